; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13")
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = add i64 %".1", 8
  %".18" = inttoptr i64 %".17" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = mul i64 %".7", 32
  %".21" = inttoptr i64 %".11" to i64*
  %".22" = load i64, i64* %".21"
  br label %"head"
head:
  %".24" = phi  i64 [0, %"entry"], [%".285", %"end.1"]
  %".25" = icmp slt i64 %".24", %".22"
  br i1 %".25", label %"body", label %"end"
body:
  %".27" = add i64 %".11", 8
  %".28" = inttoptr i64 %".27" to i64*
  %".29" = load i64, i64* %".28"
  br label %"head.1"
end:
  ret void
head.1:
  %".31" = phi  i64 [0, %"body"], [%".283", %"end.5"]
  %".32" = icmp slt i64 %".31", %".29"
  br i1 %".32", label %"body.1", label %"end.1"
body.1:
  %".34" = add i64 %".11", 16
  %".35" = inttoptr i64 %".34" to i64*
  %".36" = load i64, i64* %".35"
  %".37" = add i64 %".11", 24
  %".38" = inttoptr i64 %".37" to i64*
  %".39" = load i64, i64* %".38"
  %".40" = mul i64 %".24", %".36"
  %".41" = mul i64 %".31", %".39"
  %".42" = add i64 %".40", %".41"
  %".43" = add i64 %".11", 32
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = add i64 %".11", 40
  %".47" = inttoptr i64 %".46" to i64*
  %".48" = load i64, i64* %".47"
  %".49" = mul i64 %".24", %".45"
  %".50" = mul i64 %".31", %".48"
  %".51" = add i64 %".49", %".50"
  %".52" = icmp ne i64 %".8", 0
  br i1 %".52", label %"go", label %"again"
end.1:
  %".285" = add i64 %".24", 1
  br label %"head"
again:
  %".54" = inttoptr i64 %".3" to i64*
  %".55" = load i64, i64* %".54"
  %".56" = add i64 %".55", %".51"
  %".57" = add i64 %".56", 0
  %".58" = inttoptr i64 %".57" to <8 x float>*
  %".59" = load <8 x float>, <8 x float>* %".58", align 4
  %".60" = add i64 %".3", 8
  %".61" = inttoptr i64 %".60" to i64*
  %".62" = load i64, i64* %".61"
  %".63" = add i64 %".62", %".51"
  %".64" = add i64 %".63", 0
  %".65" = inttoptr i64 %".64" to <8 x float>*
  %".66" = load <8 x float>, <8 x float>* %".65", align 4
  br label %"go"
go:
  %".68" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".59", %"again"]
  %".69" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".66", %"again"]
  br label %"head.2"
head.2:
  %".71" = phi  i64 [0, %"go"], [%".227", %"end.4"]
  %".72" = phi  <8 x float> [%".68", %"go"], [%".198", %"end.4"]
  %".73" = phi  <8 x float> [%".69", %"go"], [%".199", %"end.4"]
  %".74" = icmp slt i64 %".71", %".6"
  br i1 %".74", label %"body.2", label %"end.2"
body.2:
  %".76" = mul i64 %".71", 8
  %".77" = add i64 %".5", %".76"
  %".78" = inttoptr i64 %".77" to i64*
  %".79" = load i64, i64* %".78"
  %".80" = add i64 %".79", %".42"
  %".81" = mul i64 %".71", %".20"
  %".82" = add i64 %".2", %".81"
  %".83" = sdiv i64 %".7", 4
  %".84" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".229" = add i64 %".11", 48
  %".230" = inttoptr i64 %".229" to i64*
  %".231" = load i64, i64* %".230"
  %".232" = add i64 %".11", 56
  %".233" = inttoptr i64 %".232" to i64*
  %".234" = load i64, i64* %".233"
  %".235" = mul i64 %".24", %".231"
  %".236" = mul i64 %".31", %".234"
  %".237" = add i64 %".235", %".236"
  %".238" = icmp ne i64 %".9", 0
  br i1 %".238", label %"final", label %"partial"
head.3:
  %".86" = phi  i64 [0, %"body.2"], [%".187", %"body.3"]
  %".87" = phi  <8 x float> [%".72", %"body.2"], [%".179", %"body.3"]
  %".88" = phi  <8 x float> [%".73", %"body.2"], [%".186", %"body.3"]
  %".89" = icmp slt i64 %".86", %".83"
  br i1 %".89", label %"body.3", label %"end.3"
body.3:
  %".91" = mul i64 %".86", 4
  %".92" = mul i64 %".91", 32
  %".93" = add i64 %".82", %".92"
  %".94" = add i64 %".93", 0
  %".95" = mul i64 %".91", 4
  %".96" = add i64 %".80", %".95"
  %".97" = add i64 %".96", 0
  %".98" = add i64 %".94", 0
  %".99" = inttoptr i64 %".98" to <8 x float>*
  %".100" = load <8 x float>, <8 x float>* %".99", align 4
  %".101" = add i64 %".16", %".97"
  %".102" = add i64 %".101", 0
  %".103" = inttoptr i64 %".102" to float*
  %".104" = load float, float* %".103"
  %".105" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".104", i32 0
  %".106" = shufflevector <8 x float> %".105", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".107" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".106", <8 x float> %".100", <8 x float> %".87")
  %".108" = add i64 %".19", %".97"
  %".109" = add i64 %".108", 0
  %".110" = inttoptr i64 %".109" to float*
  %".111" = load float, float* %".110"
  %".112" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".111", i32 0
  %".113" = shufflevector <8 x float> %".112", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".114" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".113", <8 x float> %".100", <8 x float> %".88")
  %".115" = mul i64 %".86", 4
  %".116" = mul i64 %".115", 32
  %".117" = add i64 %".82", %".116"
  %".118" = add i64 %".117", 32
  %".119" = mul i64 %".115", 4
  %".120" = add i64 %".80", %".119"
  %".121" = add i64 %".120", 4
  %".122" = add i64 %".118", 0
  %".123" = inttoptr i64 %".122" to <8 x float>*
  %".124" = load <8 x float>, <8 x float>* %".123", align 4
  %".125" = add i64 %".16", %".121"
  %".126" = add i64 %".125", 0
  %".127" = inttoptr i64 %".126" to float*
  %".128" = load float, float* %".127"
  %".129" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".128", i32 0
  %".130" = shufflevector <8 x float> %".129", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".131" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".130", <8 x float> %".124", <8 x float> %".107")
  %".132" = add i64 %".19", %".121"
  %".133" = add i64 %".132", 0
  %".134" = inttoptr i64 %".133" to float*
  %".135" = load float, float* %".134"
  %".136" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".135", i32 0
  %".137" = shufflevector <8 x float> %".136", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".138" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".137", <8 x float> %".124", <8 x float> %".114")
  %".139" = mul i64 %".86", 4
  %".140" = mul i64 %".139", 32
  %".141" = add i64 %".82", %".140"
  %".142" = add i64 %".141", 64
  %".143" = mul i64 %".139", 4
  %".144" = add i64 %".80", %".143"
  %".145" = add i64 %".144", 8
  %".146" = add i64 %".142", 0
  %".147" = inttoptr i64 %".146" to <8 x float>*
  %".148" = load <8 x float>, <8 x float>* %".147", align 4
  %".149" = add i64 %".16", %".145"
  %".150" = add i64 %".149", 0
  %".151" = inttoptr i64 %".150" to float*
  %".152" = load float, float* %".151"
  %".153" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".152", i32 0
  %".154" = shufflevector <8 x float> %".153", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".148", <8 x float> %".131")
  %".156" = add i64 %".19", %".145"
  %".157" = add i64 %".156", 0
  %".158" = inttoptr i64 %".157" to float*
  %".159" = load float, float* %".158"
  %".160" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".159", i32 0
  %".161" = shufflevector <8 x float> %".160", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".162" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".161", <8 x float> %".148", <8 x float> %".138")
  %".163" = mul i64 %".86", 4
  %".164" = mul i64 %".163", 32
  %".165" = add i64 %".82", %".164"
  %".166" = add i64 %".165", 96
  %".167" = mul i64 %".163", 4
  %".168" = add i64 %".80", %".167"
  %".169" = add i64 %".168", 12
  %".170" = add i64 %".166", 0
  %".171" = inttoptr i64 %".170" to <8 x float>*
  %".172" = load <8 x float>, <8 x float>* %".171", align 4
  %".173" = add i64 %".16", %".169"
  %".174" = add i64 %".173", 0
  %".175" = inttoptr i64 %".174" to float*
  %".176" = load float, float* %".175"
  %".177" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".176", i32 0
  %".178" = shufflevector <8 x float> %".177", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".179" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".178", <8 x float> %".172", <8 x float> %".155")
  %".180" = add i64 %".19", %".169"
  %".181" = add i64 %".180", 0
  %".182" = inttoptr i64 %".181" to float*
  %".183" = load float, float* %".182"
  %".184" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".183", i32 0
  %".185" = shufflevector <8 x float> %".184", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".186" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".185", <8 x float> %".172", <8 x float> %".162")
  %".187" = add i64 %".86", 1
  br label %"head.3"
end.3:
  %".189" = mul i64 %".83", 4
  %".190" = mul i64 %".189", 32
  %".191" = add i64 %".82", %".190"
  %".192" = add i64 %".191", 0
  %".193" = mul i64 %".189", 4
  %".194" = add i64 %".80", %".193"
  %".195" = add i64 %".194", 0
  br label %"head.4"
head.4:
  %".197" = phi  i64 [0, %"end.3"], [%".225", %"body.4"]
  %".198" = phi  <8 x float> [%".87", %"end.3"], [%".217", %"body.4"]
  %".199" = phi  <8 x float> [%".88", %"end.3"], [%".224", %"body.4"]
  %".200" = icmp slt i64 %".197", %".84"
  br i1 %".200", label %"body.4", label %"end.4"
body.4:
  %".202" = mul i64 %".197", 32
  %".203" = add i64 %".192", %".202"
  %".204" = add i64 %".203", 0
  %".205" = mul i64 %".197", 4
  %".206" = add i64 %".195", %".205"
  %".207" = add i64 %".206", 0
  %".208" = add i64 %".204", 0
  %".209" = inttoptr i64 %".208" to <8 x float>*
  %".210" = load <8 x float>, <8 x float>* %".209", align 4
  %".211" = add i64 %".16", %".207"
  %".212" = add i64 %".211", 0
  %".213" = inttoptr i64 %".212" to float*
  %".214" = load float, float* %".213"
  %".215" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".214", i32 0
  %".216" = shufflevector <8 x float> %".215", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".217" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".216", <8 x float> %".210", <8 x float> %".198")
  %".218" = add i64 %".19", %".207"
  %".219" = add i64 %".218", 0
  %".220" = inttoptr i64 %".219" to float*
  %".221" = load float, float* %".220"
  %".222" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".221", i32 0
  %".223" = shufflevector <8 x float> %".222", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".224" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".223", <8 x float> %".210", <8 x float> %".199")
  %".225" = add i64 %".197", 1
  br label %"head.4"
end.4:
  %".227" = add i64 %".71", 1
  br label %"head.2"
partial:
  %".240" = inttoptr i64 %".3" to i64*
  %".241" = load i64, i64* %".240"
  %".242" = add i64 %".241", %".51"
  %".243" = add i64 %".242", 0
  %".244" = inttoptr i64 %".243" to <8 x float>*
  store <8 x float> %".72", <8 x float>* %".244", align 4
  %".246" = add i64 %".3", 8
  %".247" = inttoptr i64 %".246" to i64*
  %".248" = load i64, i64* %".247"
  %".249" = add i64 %".248", %".51"
  %".250" = add i64 %".249", 0
  %".251" = inttoptr i64 %".250" to <8 x float>*
  store <8 x float> %".73", <8 x float>* %".251", align 4
  br label %"end.5"
final:
  %".254" = inttoptr i64 %".4" to i64*
  %".255" = load i64, i64* %".254"
  %".256" = add i64 %".255", 0
  %".257" = inttoptr i64 %".256" to <8 x float>*
  %".258" = load <8 x float>, <8 x float>* %".257", align 4
  %".259" = fadd contract <8 x float> %".72", %".258"
  %".260" = fcmp olt <8 x float> %".259", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".261" = select  <8 x i1> %".260", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".259"
  %".262" = fcmp ole <8 x float> %".259", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".263" = select  <8 x i1> %".262", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".259"
  %".264" = inttoptr i64 %".3" to i64*
  %".265" = load i64, i64* %".264"
  %".266" = add i64 %".265", %".51"
  %".267" = add i64 %".266", 0
  %".268" = inttoptr i64 %".267" to <8 x float>*
  store <8 x float> %".263", <8 x float>* %".268", align 4
  %".270" = fadd contract <8 x float> %".73", %".258"
  %".271" = fcmp olt <8 x float> %".270", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".272" = select  <8 x i1> %".271", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".270"
  %".273" = fcmp ole <8 x float> %".270", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".274" = select  <8 x i1> %".273", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".270"
  %".275" = add i64 %".3", 8
  %".276" = inttoptr i64 %".275" to i64*
  %".277" = load i64, i64* %".276"
  %".278" = add i64 %".277", %".51"
  %".279" = add i64 %".278", 0
  %".280" = inttoptr i64 %".279" to <8 x float>*
  store <8 x float> %".274", <8 x float>* %".280", align 4
  br label %"end.5"
end.5:
  %".283" = add i64 %".31", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
