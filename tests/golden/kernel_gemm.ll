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
  %".43" = add i64 %".11", 48
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = add i64 %".11", 56
  %".47" = inttoptr i64 %".46" to i64*
  %".48" = load i64, i64* %".47"
  %".49" = mul i64 %".24", %".45"
  %".50" = mul i64 %".31", %".48"
  %".51" = add i64 %".49", %".50"
  %".52" = add i64 %".11", 32
  %".53" = inttoptr i64 %".52" to i64*
  %".54" = load i64, i64* %".53"
  %".55" = add i64 %".11", 40
  %".56" = inttoptr i64 %".55" to i64*
  %".57" = load i64, i64* %".56"
  %".58" = mul i64 %".24", %".54"
  %".59" = mul i64 %".31", %".57"
  %".60" = add i64 %".58", %".59"
  %".61" = icmp ne i64 %".8", 0
  br i1 %".61", label %"go", label %"again"
end.1:
  %".285" = add i64 %".24", 1
  br label %"head"
again:
  %".63" = inttoptr i64 %".3" to i64*
  %".64" = load i64, i64* %".63"
  %".65" = add i64 %".64", %".60"
  %".66" = add i64 %".65", 0
  %".67" = inttoptr i64 %".66" to <8 x float>*
  %".68" = load <8 x float>, <8 x float>* %".67", align 4
  %".69" = add i64 %".3", 8
  %".70" = inttoptr i64 %".69" to i64*
  %".71" = load i64, i64* %".70"
  %".72" = add i64 %".71", %".60"
  %".73" = add i64 %".72", 0
  %".74" = inttoptr i64 %".73" to <8 x float>*
  %".75" = load <8 x float>, <8 x float>* %".74", align 4
  br label %"go"
go:
  %".77" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".68", %"again"]
  %".78" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".75", %"again"]
  br label %"head.2"
head.2:
  %".80" = phi  i64 [0, %"go"], [%".236", %"end.4"]
  %".81" = phi  <8 x float> [%".77", %"go"], [%".207", %"end.4"]
  %".82" = phi  <8 x float> [%".78", %"go"], [%".208", %"end.4"]
  %".83" = icmp slt i64 %".80", %".6"
  br i1 %".83", label %"body.2", label %"end.2"
body.2:
  %".85" = mul i64 %".80", 8
  %".86" = add i64 %".5", %".85"
  %".87" = inttoptr i64 %".86" to i64*
  %".88" = load i64, i64* %".87"
  %".89" = add i64 %".88", %".42"
  %".90" = mul i64 %".80", %".20"
  %".91" = add i64 %".2", %".90"
  %".92" = sdiv i64 %".7", 4
  %".93" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".238" = icmp ne i64 %".9", 0
  br i1 %".238", label %"final", label %"partial"
head.3:
  %".95" = phi  i64 [0, %"body.2"], [%".196", %"body.3"]
  %".96" = phi  <8 x float> [%".81", %"body.2"], [%".188", %"body.3"]
  %".97" = phi  <8 x float> [%".82", %"body.2"], [%".195", %"body.3"]
  %".98" = icmp slt i64 %".95", %".92"
  br i1 %".98", label %"body.3", label %"end.3"
body.3:
  %".100" = mul i64 %".95", 4
  %".101" = mul i64 %".100", 32
  %".102" = add i64 %".91", %".101"
  %".103" = add i64 %".102", 0
  %".104" = mul i64 %".100", 4
  %".105" = add i64 %".89", %".104"
  %".106" = add i64 %".105", 0
  %".107" = add i64 %".103", 0
  %".108" = inttoptr i64 %".107" to <8 x float>*
  %".109" = load <8 x float>, <8 x float>* %".108", align 4
  %".110" = add i64 %".16", %".106"
  %".111" = add i64 %".110", 0
  %".112" = inttoptr i64 %".111" to float*
  %".113" = load float, float* %".112"
  %".114" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".113", i32 0
  %".115" = shufflevector <8 x float> %".114", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".116" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".115", <8 x float> %".109", <8 x float> %".96")
  %".117" = add i64 %".19", %".106"
  %".118" = add i64 %".117", 0
  %".119" = inttoptr i64 %".118" to float*
  %".120" = load float, float* %".119"
  %".121" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".120", i32 0
  %".122" = shufflevector <8 x float> %".121", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".123" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".122", <8 x float> %".109", <8 x float> %".97")
  %".124" = mul i64 %".95", 4
  %".125" = mul i64 %".124", 32
  %".126" = add i64 %".91", %".125"
  %".127" = add i64 %".126", 32
  %".128" = mul i64 %".124", 4
  %".129" = add i64 %".89", %".128"
  %".130" = add i64 %".129", 4
  %".131" = add i64 %".127", 0
  %".132" = inttoptr i64 %".131" to <8 x float>*
  %".133" = load <8 x float>, <8 x float>* %".132", align 4
  %".134" = add i64 %".16", %".130"
  %".135" = add i64 %".134", 0
  %".136" = inttoptr i64 %".135" to float*
  %".137" = load float, float* %".136"
  %".138" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".137", i32 0
  %".139" = shufflevector <8 x float> %".138", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".140" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".139", <8 x float> %".133", <8 x float> %".116")
  %".141" = add i64 %".19", %".130"
  %".142" = add i64 %".141", 0
  %".143" = inttoptr i64 %".142" to float*
  %".144" = load float, float* %".143"
  %".145" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".144", i32 0
  %".146" = shufflevector <8 x float> %".145", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".147" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".146", <8 x float> %".133", <8 x float> %".123")
  %".148" = mul i64 %".95", 4
  %".149" = mul i64 %".148", 32
  %".150" = add i64 %".91", %".149"
  %".151" = add i64 %".150", 64
  %".152" = mul i64 %".148", 4
  %".153" = add i64 %".89", %".152"
  %".154" = add i64 %".153", 8
  %".155" = add i64 %".151", 0
  %".156" = inttoptr i64 %".155" to <8 x float>*
  %".157" = load <8 x float>, <8 x float>* %".156", align 4
  %".158" = add i64 %".16", %".154"
  %".159" = add i64 %".158", 0
  %".160" = inttoptr i64 %".159" to float*
  %".161" = load float, float* %".160"
  %".162" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".161", i32 0
  %".163" = shufflevector <8 x float> %".162", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".164" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".163", <8 x float> %".157", <8 x float> %".140")
  %".165" = add i64 %".19", %".154"
  %".166" = add i64 %".165", 0
  %".167" = inttoptr i64 %".166" to float*
  %".168" = load float, float* %".167"
  %".169" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".168", i32 0
  %".170" = shufflevector <8 x float> %".169", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".171" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".170", <8 x float> %".157", <8 x float> %".147")
  %".172" = mul i64 %".95", 4
  %".173" = mul i64 %".172", 32
  %".174" = add i64 %".91", %".173"
  %".175" = add i64 %".174", 96
  %".176" = mul i64 %".172", 4
  %".177" = add i64 %".89", %".176"
  %".178" = add i64 %".177", 12
  %".179" = add i64 %".175", 0
  %".180" = inttoptr i64 %".179" to <8 x float>*
  %".181" = load <8 x float>, <8 x float>* %".180", align 4
  %".182" = add i64 %".16", %".178"
  %".183" = add i64 %".182", 0
  %".184" = inttoptr i64 %".183" to float*
  %".185" = load float, float* %".184"
  %".186" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".185", i32 0
  %".187" = shufflevector <8 x float> %".186", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".188" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".187", <8 x float> %".181", <8 x float> %".164")
  %".189" = add i64 %".19", %".178"
  %".190" = add i64 %".189", 0
  %".191" = inttoptr i64 %".190" to float*
  %".192" = load float, float* %".191"
  %".193" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".192", i32 0
  %".194" = shufflevector <8 x float> %".193", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".195" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".194", <8 x float> %".181", <8 x float> %".171")
  %".196" = add i64 %".95", 1
  br label %"head.3"
end.3:
  %".198" = mul i64 %".92", 4
  %".199" = mul i64 %".198", 32
  %".200" = add i64 %".91", %".199"
  %".201" = add i64 %".200", 0
  %".202" = mul i64 %".198", 4
  %".203" = add i64 %".89", %".202"
  %".204" = add i64 %".203", 0
  br label %"head.4"
head.4:
  %".206" = phi  i64 [0, %"end.3"], [%".234", %"body.4"]
  %".207" = phi  <8 x float> [%".96", %"end.3"], [%".226", %"body.4"]
  %".208" = phi  <8 x float> [%".97", %"end.3"], [%".233", %"body.4"]
  %".209" = icmp slt i64 %".206", %".93"
  br i1 %".209", label %"body.4", label %"end.4"
body.4:
  %".211" = mul i64 %".206", 32
  %".212" = add i64 %".201", %".211"
  %".213" = add i64 %".212", 0
  %".214" = mul i64 %".206", 4
  %".215" = add i64 %".204", %".214"
  %".216" = add i64 %".215", 0
  %".217" = add i64 %".213", 0
  %".218" = inttoptr i64 %".217" to <8 x float>*
  %".219" = load <8 x float>, <8 x float>* %".218", align 4
  %".220" = add i64 %".16", %".216"
  %".221" = add i64 %".220", 0
  %".222" = inttoptr i64 %".221" to float*
  %".223" = load float, float* %".222"
  %".224" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".223", i32 0
  %".225" = shufflevector <8 x float> %".224", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".226" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".225", <8 x float> %".219", <8 x float> %".207")
  %".227" = add i64 %".19", %".216"
  %".228" = add i64 %".227", 0
  %".229" = inttoptr i64 %".228" to float*
  %".230" = load float, float* %".229"
  %".231" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".230", i32 0
  %".232" = shufflevector <8 x float> %".231", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".233" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".232", <8 x float> %".219", <8 x float> %".208")
  %".234" = add i64 %".206", 1
  br label %"head.4"
end.4:
  %".236" = add i64 %".80", 1
  br label %"head.2"
partial:
  %".240" = inttoptr i64 %".3" to i64*
  %".241" = load i64, i64* %".240"
  %".242" = add i64 %".241", %".60"
  %".243" = add i64 %".242", 0
  %".244" = inttoptr i64 %".243" to <8 x float>*
  store <8 x float> %".81", <8 x float>* %".244", align 4
  %".246" = add i64 %".3", 8
  %".247" = inttoptr i64 %".246" to i64*
  %".248" = load i64, i64* %".247"
  %".249" = add i64 %".248", %".60"
  %".250" = add i64 %".249", 0
  %".251" = inttoptr i64 %".250" to <8 x float>*
  store <8 x float> %".82", <8 x float>* %".251", align 4
  br label %"end.5"
final:
  %".254" = inttoptr i64 %".4" to i64*
  %".255" = load i64, i64* %".254"
  %".256" = add i64 %".255", 0
  %".257" = inttoptr i64 %".256" to <8 x float>*
  %".258" = load <8 x float>, <8 x float>* %".257", align 4
  %".259" = fadd contract <8 x float> %".81", %".258"
  %".260" = fcmp olt <8 x float> %".259", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".261" = select  <8 x i1> %".260", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".259"
  %".262" = fcmp ole <8 x float> %".259", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".263" = select  <8 x i1> %".262", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".259"
  %".264" = inttoptr i64 %".3" to i64*
  %".265" = load i64, i64* %".264"
  %".266" = add i64 %".265", %".60"
  %".267" = add i64 %".266", 0
  %".268" = inttoptr i64 %".267" to <8 x float>*
  store <8 x float> %".263", <8 x float>* %".268", align 4
  %".270" = fadd contract <8 x float> %".82", %".258"
  %".271" = fcmp olt <8 x float> %".270", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".272" = select  <8 x i1> %".271", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".270"
  %".273" = fcmp ole <8 x float> %".270", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".274" = select  <8 x i1> %".273", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".270"
  %".275" = add i64 %".3", 8
  %".276" = inttoptr i64 %".275" to i64*
  %".277" = load i64, i64* %".276"
  %".278" = add i64 %".277", %".60"
  %".279" = add i64 %".278", 0
  %".280" = inttoptr i64 %".279" to <8 x float>*
  store <8 x float> %".274", <8 x float>* %".280", align 4
  br label %"end.5"
end.5:
  %".283" = add i64 %".31", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
