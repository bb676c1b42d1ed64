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
  %".21" = add i64 %".11", 8
  %".22" = inttoptr i64 %".21" to i64*
  %".23" = load i64, i64* %".22"
  %".24" = inttoptr i64 %".11" to i64*
  %".25" = load i64, i64* %".24"
  br label %"head"
head:
  %".27" = phi  i64 [0, %"entry"], [%".289", %"end.1"]
  %".28" = icmp slt i64 %".27", %".25"
  br i1 %".28", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".31" = phi  i64 [0, %"body"], [%".287", %"end.5"]
  %".32" = icmp slt i64 %".31", %".23"
  br i1 %".32", label %"body.1", label %"end.1"
body.1:
  %".34" = mul i64 %".27", %".23"
  %".35" = add i64 %".34", %".31"
  %".36" = add i64 %".11", 16
  %".37" = inttoptr i64 %".36" to i64*
  %".38" = load i64, i64* %".37"
  %".39" = add i64 %".11", 24
  %".40" = inttoptr i64 %".39" to i64*
  %".41" = load i64, i64* %".40"
  %".42" = mul i64 %".27", %".38"
  %".43" = mul i64 %".31", %".41"
  %".44" = add i64 %".42", %".43"
  %".45" = add i64 %".11", 48
  %".46" = inttoptr i64 %".45" to i64*
  %".47" = load i64, i64* %".46"
  %".48" = add i64 %".11", 56
  %".49" = inttoptr i64 %".48" to i64*
  %".50" = load i64, i64* %".49"
  %".51" = mul i64 %".27", %".47"
  %".52" = mul i64 %".31", %".50"
  %".53" = add i64 %".51", %".52"
  %".54" = add i64 %".11", 32
  %".55" = inttoptr i64 %".54" to i64*
  %".56" = load i64, i64* %".55"
  %".57" = add i64 %".11", 40
  %".58" = inttoptr i64 %".57" to i64*
  %".59" = load i64, i64* %".58"
  %".60" = mul i64 %".27", %".56"
  %".61" = mul i64 %".31", %".59"
  %".62" = add i64 %".60", %".61"
  %".63" = icmp ne i64 %".8", 0
  br i1 %".63", label %"go", label %"again"
end.1:
  %".289" = add i64 %".27", 1
  br label %"head"
again:
  %".65" = inttoptr i64 %".3" to i64*
  %".66" = load i64, i64* %".65"
  %".67" = add i64 %".66", %".62"
  %".68" = add i64 %".67", 0
  %".69" = inttoptr i64 %".68" to <8 x float>*
  %".70" = load <8 x float>, <8 x float>* %".69", align 4
  %".71" = add i64 %".3", 8
  %".72" = inttoptr i64 %".71" to i64*
  %".73" = load i64, i64* %".72"
  %".74" = add i64 %".73", %".62"
  %".75" = add i64 %".74", 0
  %".76" = inttoptr i64 %".75" to <8 x float>*
  %".77" = load <8 x float>, <8 x float>* %".76", align 4
  br label %"go"
go:
  %".79" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".70", %"again"]
  %".80" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".77", %"again"]
  br label %"head.2"
head.2:
  %".82" = phi  i64 [0, %"go"], [%".240", %"end.4"]
  %".83" = phi  <8 x float> [%".79", %"go"], [%".211", %"end.4"]
  %".84" = phi  <8 x float> [%".80", %"go"], [%".212", %"end.4"]
  %".85" = icmp slt i64 %".82", %".6"
  br i1 %".85", label %"body.2", label %"end.2"
body.2:
  %".87" = mul i64 %".35", %".6"
  %".88" = add i64 %".87", %".82"
  %".89" = mul i64 %".82", 8
  %".90" = add i64 %".5", %".89"
  %".91" = inttoptr i64 %".90" to i64*
  %".92" = load i64, i64* %".91"
  %".93" = add i64 %".92", %".44"
  %".94" = mul i64 %".82", %".20"
  %".95" = add i64 %".2", %".94"
  %".96" = sdiv i64 %".7", 4
  %".97" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".242" = icmp ne i64 %".9", 0
  br i1 %".242", label %"final", label %"partial"
head.3:
  %".99" = phi  i64 [0, %"body.2"], [%".200", %"body.3"]
  %".100" = phi  <8 x float> [%".83", %"body.2"], [%".192", %"body.3"]
  %".101" = phi  <8 x float> [%".84", %"body.2"], [%".199", %"body.3"]
  %".102" = icmp slt i64 %".99", %".96"
  br i1 %".102", label %"body.3", label %"end.3"
body.3:
  %".104" = mul i64 %".99", 4
  %".105" = mul i64 %".104", 32
  %".106" = add i64 %".95", %".105"
  %".107" = add i64 %".106", 0
  %".108" = mul i64 %".104", 4
  %".109" = add i64 %".93", %".108"
  %".110" = add i64 %".109", 0
  %".111" = add i64 %".107", 0
  %".112" = inttoptr i64 %".111" to <8 x float>*
  %".113" = load <8 x float>, <8 x float>* %".112", align 4
  %".114" = add i64 %".16", %".110"
  %".115" = add i64 %".114", 0
  %".116" = inttoptr i64 %".115" to float*
  %".117" = load float, float* %".116"
  %".118" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".117", i32 0
  %".119" = shufflevector <8 x float> %".118", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".120" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".119", <8 x float> %".113", <8 x float> %".100")
  %".121" = add i64 %".19", %".110"
  %".122" = add i64 %".121", 0
  %".123" = inttoptr i64 %".122" to float*
  %".124" = load float, float* %".123"
  %".125" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".124", i32 0
  %".126" = shufflevector <8 x float> %".125", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".127" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".126", <8 x float> %".113", <8 x float> %".101")
  %".128" = mul i64 %".99", 4
  %".129" = mul i64 %".128", 32
  %".130" = add i64 %".95", %".129"
  %".131" = add i64 %".130", 32
  %".132" = mul i64 %".128", 4
  %".133" = add i64 %".93", %".132"
  %".134" = add i64 %".133", 4
  %".135" = add i64 %".131", 0
  %".136" = inttoptr i64 %".135" to <8 x float>*
  %".137" = load <8 x float>, <8 x float>* %".136", align 4
  %".138" = add i64 %".16", %".134"
  %".139" = add i64 %".138", 0
  %".140" = inttoptr i64 %".139" to float*
  %".141" = load float, float* %".140"
  %".142" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".141", i32 0
  %".143" = shufflevector <8 x float> %".142", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".144" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".143", <8 x float> %".137", <8 x float> %".120")
  %".145" = add i64 %".19", %".134"
  %".146" = add i64 %".145", 0
  %".147" = inttoptr i64 %".146" to float*
  %".148" = load float, float* %".147"
  %".149" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".148", i32 0
  %".150" = shufflevector <8 x float> %".149", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".151" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".137", <8 x float> %".127")
  %".152" = mul i64 %".99", 4
  %".153" = mul i64 %".152", 32
  %".154" = add i64 %".95", %".153"
  %".155" = add i64 %".154", 64
  %".156" = mul i64 %".152", 4
  %".157" = add i64 %".93", %".156"
  %".158" = add i64 %".157", 8
  %".159" = add i64 %".155", 0
  %".160" = inttoptr i64 %".159" to <8 x float>*
  %".161" = load <8 x float>, <8 x float>* %".160", align 4
  %".162" = add i64 %".16", %".158"
  %".163" = add i64 %".162", 0
  %".164" = inttoptr i64 %".163" to float*
  %".165" = load float, float* %".164"
  %".166" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".165", i32 0
  %".167" = shufflevector <8 x float> %".166", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".168" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".167", <8 x float> %".161", <8 x float> %".144")
  %".169" = add i64 %".19", %".158"
  %".170" = add i64 %".169", 0
  %".171" = inttoptr i64 %".170" to float*
  %".172" = load float, float* %".171"
  %".173" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".172", i32 0
  %".174" = shufflevector <8 x float> %".173", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".175" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".174", <8 x float> %".161", <8 x float> %".151")
  %".176" = mul i64 %".99", 4
  %".177" = mul i64 %".176", 32
  %".178" = add i64 %".95", %".177"
  %".179" = add i64 %".178", 96
  %".180" = mul i64 %".176", 4
  %".181" = add i64 %".93", %".180"
  %".182" = add i64 %".181", 12
  %".183" = add i64 %".179", 0
  %".184" = inttoptr i64 %".183" to <8 x float>*
  %".185" = load <8 x float>, <8 x float>* %".184", align 4
  %".186" = add i64 %".16", %".182"
  %".187" = add i64 %".186", 0
  %".188" = inttoptr i64 %".187" to float*
  %".189" = load float, float* %".188"
  %".190" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".189", i32 0
  %".191" = shufflevector <8 x float> %".190", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".192" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".191", <8 x float> %".185", <8 x float> %".168")
  %".193" = add i64 %".19", %".182"
  %".194" = add i64 %".193", 0
  %".195" = inttoptr i64 %".194" to float*
  %".196" = load float, float* %".195"
  %".197" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".196", i32 0
  %".198" = shufflevector <8 x float> %".197", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".199" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".198", <8 x float> %".185", <8 x float> %".175")
  %".200" = add i64 %".99", 1
  br label %"head.3"
end.3:
  %".202" = mul i64 %".96", 4
  %".203" = mul i64 %".202", 32
  %".204" = add i64 %".95", %".203"
  %".205" = add i64 %".204", 0
  %".206" = mul i64 %".202", 4
  %".207" = add i64 %".93", %".206"
  %".208" = add i64 %".207", 0
  br label %"head.4"
head.4:
  %".210" = phi  i64 [0, %"end.3"], [%".238", %"body.4"]
  %".211" = phi  <8 x float> [%".100", %"end.3"], [%".230", %"body.4"]
  %".212" = phi  <8 x float> [%".101", %"end.3"], [%".237", %"body.4"]
  %".213" = icmp slt i64 %".210", %".97"
  br i1 %".213", label %"body.4", label %"end.4"
body.4:
  %".215" = mul i64 %".210", 32
  %".216" = add i64 %".205", %".215"
  %".217" = add i64 %".216", 0
  %".218" = mul i64 %".210", 4
  %".219" = add i64 %".208", %".218"
  %".220" = add i64 %".219", 0
  %".221" = add i64 %".217", 0
  %".222" = inttoptr i64 %".221" to <8 x float>*
  %".223" = load <8 x float>, <8 x float>* %".222", align 4
  %".224" = add i64 %".16", %".220"
  %".225" = add i64 %".224", 0
  %".226" = inttoptr i64 %".225" to float*
  %".227" = load float, float* %".226"
  %".228" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".227", i32 0
  %".229" = shufflevector <8 x float> %".228", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".230" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".229", <8 x float> %".223", <8 x float> %".211")
  %".231" = add i64 %".19", %".220"
  %".232" = add i64 %".231", 0
  %".233" = inttoptr i64 %".232" to float*
  %".234" = load float, float* %".233"
  %".235" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".234", i32 0
  %".236" = shufflevector <8 x float> %".235", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".237" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".236", <8 x float> %".223", <8 x float> %".212")
  %".238" = add i64 %".210", 1
  br label %"head.4"
end.4:
  %".240" = add i64 %".82", 1
  br label %"head.2"
partial:
  %".244" = inttoptr i64 %".3" to i64*
  %".245" = load i64, i64* %".244"
  %".246" = add i64 %".245", %".62"
  %".247" = add i64 %".246", 0
  %".248" = inttoptr i64 %".247" to <8 x float>*
  store <8 x float> %".83", <8 x float>* %".248", align 4
  %".250" = add i64 %".3", 8
  %".251" = inttoptr i64 %".250" to i64*
  %".252" = load i64, i64* %".251"
  %".253" = add i64 %".252", %".62"
  %".254" = add i64 %".253", 0
  %".255" = inttoptr i64 %".254" to <8 x float>*
  store <8 x float> %".84", <8 x float>* %".255", align 4
  br label %"end.5"
final:
  %".258" = inttoptr i64 %".4" to i64*
  %".259" = load i64, i64* %".258"
  %".260" = add i64 %".259", 0
  %".261" = inttoptr i64 %".260" to <8 x float>*
  %".262" = load <8 x float>, <8 x float>* %".261", align 4
  %".263" = fadd contract <8 x float> %".83", %".262"
  %".264" = fcmp olt <8 x float> %".263", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".265" = select  <8 x i1> %".264", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".263"
  %".266" = fcmp ole <8 x float> %".263", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".267" = select  <8 x i1> %".266", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".263"
  %".268" = inttoptr i64 %".3" to i64*
  %".269" = load i64, i64* %".268"
  %".270" = add i64 %".269", %".62"
  %".271" = add i64 %".270", 0
  %".272" = inttoptr i64 %".271" to <8 x float>*
  store <8 x float> %".267", <8 x float>* %".272", align 4
  %".274" = fadd contract <8 x float> %".84", %".262"
  %".275" = fcmp olt <8 x float> %".274", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".276" = select  <8 x i1> %".275", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".274"
  %".277" = fcmp ole <8 x float> %".274", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".278" = select  <8 x i1> %".277", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".274"
  %".279" = add i64 %".3", 8
  %".280" = inttoptr i64 %".279" to i64*
  %".281" = load i64, i64* %".280"
  %".282" = add i64 %".281", %".62"
  %".283" = add i64 %".282", 0
  %".284" = inttoptr i64 %".283" to <8 x float>*
  store <8 x float> %".278", <8 x float>* %".284", align 4
  br label %"end.5"
end.5:
  %".287" = add i64 %".31", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
