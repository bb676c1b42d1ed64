; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13") nounwind
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
  %".27" = phi  i64 [0, %"entry"], [%".293", %"end.1"]
  %".28" = icmp slt i64 %".27", %".25"
  br i1 %".28", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".31" = phi  i64 [0, %"body"], [%".291", %"end.5"]
  %".32" = icmp slt i64 %".31", %".23"
  br i1 %".32", label %"body.1", label %"end.1"
body.1:
  %".34" = add i64 %".11", 16
  %".35" = inttoptr i64 %".34" to i64*
  %".36" = load i64, i64* %".35"
  %".37" = mul i64 %".27", %".23"
  %".38" = add i64 %".36", %".37"
  %".39" = add i64 %".38", %".31"
  %".40" = add i64 %".11", 24
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = add i64 %".11", 32
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = mul i64 %".27", %".42"
  %".47" = mul i64 %".31", %".45"
  %".48" = add i64 %".46", %".47"
  %".49" = add i64 %".11", 56
  %".50" = inttoptr i64 %".49" to i64*
  %".51" = load i64, i64* %".50"
  %".52" = add i64 %".11", 64
  %".53" = inttoptr i64 %".52" to i64*
  %".54" = load i64, i64* %".53"
  %".55" = mul i64 %".27", %".51"
  %".56" = mul i64 %".31", %".54"
  %".57" = add i64 %".55", %".56"
  %".58" = add i64 %".11", 40
  %".59" = inttoptr i64 %".58" to i64*
  %".60" = load i64, i64* %".59"
  %".61" = add i64 %".11", 48
  %".62" = inttoptr i64 %".61" to i64*
  %".63" = load i64, i64* %".62"
  %".64" = mul i64 %".27", %".60"
  %".65" = mul i64 %".31", %".63"
  %".66" = add i64 %".64", %".65"
  %".67" = icmp ne i64 %".8", 0
  br i1 %".67", label %"go", label %"again"
end.1:
  %".293" = add i64 %".27", 1
  br label %"head"
again:
  %".69" = inttoptr i64 %".3" to i64*
  %".70" = load i64, i64* %".69"
  %".71" = add i64 %".70", %".66"
  %".72" = add i64 %".71", 0
  %".73" = inttoptr i64 %".72" to <8 x float>*
  %".74" = load <8 x float>, <8 x float>* %".73", align 4
  %".75" = add i64 %".3", 8
  %".76" = inttoptr i64 %".75" to i64*
  %".77" = load i64, i64* %".76"
  %".78" = add i64 %".77", %".66"
  %".79" = add i64 %".78", 0
  %".80" = inttoptr i64 %".79" to <8 x float>*
  %".81" = load <8 x float>, <8 x float>* %".80", align 4
  br label %"go"
go:
  %".83" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".74", %"again"]
  %".84" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".81", %"again"]
  br label %"head.2"
head.2:
  %".86" = phi  i64 [0, %"go"], [%".244", %"end.4"]
  %".87" = phi  <8 x float> [%".83", %"go"], [%".215", %"end.4"]
  %".88" = phi  <8 x float> [%".84", %"go"], [%".216", %"end.4"]
  %".89" = icmp slt i64 %".86", %".6"
  br i1 %".89", label %"body.2", label %"end.2"
body.2:
  %".91" = mul i64 %".39", %".6"
  %".92" = add i64 %".91", %".86"
  %".93" = mul i64 %".86", 8
  %".94" = add i64 %".5", %".93"
  %".95" = inttoptr i64 %".94" to i64*
  %".96" = load i64, i64* %".95"
  %".97" = add i64 %".96", %".48"
  %".98" = mul i64 %".86", %".20"
  %".99" = add i64 %".2", %".98"
  %".100" = sdiv i64 %".7", 4
  %".101" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".246" = icmp ne i64 %".9", 0
  br i1 %".246", label %"final", label %"partial"
head.3:
  %".103" = phi  i64 [0, %"body.2"], [%".204", %"body.3"]
  %".104" = phi  <8 x float> [%".87", %"body.2"], [%".196", %"body.3"]
  %".105" = phi  <8 x float> [%".88", %"body.2"], [%".203", %"body.3"]
  %".106" = icmp slt i64 %".103", %".100"
  br i1 %".106", label %"body.3", label %"end.3"
body.3:
  %".108" = mul i64 %".103", 4
  %".109" = mul i64 %".108", 32
  %".110" = add i64 %".99", %".109"
  %".111" = add i64 %".110", 0
  %".112" = mul i64 %".108", 4
  %".113" = add i64 %".97", %".112"
  %".114" = add i64 %".113", 0
  %".115" = add i64 %".111", 0
  %".116" = inttoptr i64 %".115" to <8 x float>*
  %".117" = load <8 x float>, <8 x float>* %".116", align 4
  %".118" = add i64 %".16", %".114"
  %".119" = add i64 %".118", 0
  %".120" = inttoptr i64 %".119" to float*
  %".121" = load float, float* %".120"
  %".122" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".121", i32 0
  %".123" = shufflevector <8 x float> %".122", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".124" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".123", <8 x float> %".117", <8 x float> %".104")
  %".125" = add i64 %".19", %".114"
  %".126" = add i64 %".125", 0
  %".127" = inttoptr i64 %".126" to float*
  %".128" = load float, float* %".127"
  %".129" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".128", i32 0
  %".130" = shufflevector <8 x float> %".129", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".131" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".130", <8 x float> %".117", <8 x float> %".105")
  %".132" = mul i64 %".103", 4
  %".133" = mul i64 %".132", 32
  %".134" = add i64 %".99", %".133"
  %".135" = add i64 %".134", 32
  %".136" = mul i64 %".132", 4
  %".137" = add i64 %".97", %".136"
  %".138" = add i64 %".137", 4
  %".139" = add i64 %".135", 0
  %".140" = inttoptr i64 %".139" to <8 x float>*
  %".141" = load <8 x float>, <8 x float>* %".140", align 4
  %".142" = add i64 %".16", %".138"
  %".143" = add i64 %".142", 0
  %".144" = inttoptr i64 %".143" to float*
  %".145" = load float, float* %".144"
  %".146" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".145", i32 0
  %".147" = shufflevector <8 x float> %".146", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".148" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".147", <8 x float> %".141", <8 x float> %".124")
  %".149" = add i64 %".19", %".138"
  %".150" = add i64 %".149", 0
  %".151" = inttoptr i64 %".150" to float*
  %".152" = load float, float* %".151"
  %".153" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".152", i32 0
  %".154" = shufflevector <8 x float> %".153", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".141", <8 x float> %".131")
  %".156" = mul i64 %".103", 4
  %".157" = mul i64 %".156", 32
  %".158" = add i64 %".99", %".157"
  %".159" = add i64 %".158", 64
  %".160" = mul i64 %".156", 4
  %".161" = add i64 %".97", %".160"
  %".162" = add i64 %".161", 8
  %".163" = add i64 %".159", 0
  %".164" = inttoptr i64 %".163" to <8 x float>*
  %".165" = load <8 x float>, <8 x float>* %".164", align 4
  %".166" = add i64 %".16", %".162"
  %".167" = add i64 %".166", 0
  %".168" = inttoptr i64 %".167" to float*
  %".169" = load float, float* %".168"
  %".170" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".169", i32 0
  %".171" = shufflevector <8 x float> %".170", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".172" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".171", <8 x float> %".165", <8 x float> %".148")
  %".173" = add i64 %".19", %".162"
  %".174" = add i64 %".173", 0
  %".175" = inttoptr i64 %".174" to float*
  %".176" = load float, float* %".175"
  %".177" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".176", i32 0
  %".178" = shufflevector <8 x float> %".177", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".179" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".178", <8 x float> %".165", <8 x float> %".155")
  %".180" = mul i64 %".103", 4
  %".181" = mul i64 %".180", 32
  %".182" = add i64 %".99", %".181"
  %".183" = add i64 %".182", 96
  %".184" = mul i64 %".180", 4
  %".185" = add i64 %".97", %".184"
  %".186" = add i64 %".185", 12
  %".187" = add i64 %".183", 0
  %".188" = inttoptr i64 %".187" to <8 x float>*
  %".189" = load <8 x float>, <8 x float>* %".188", align 4
  %".190" = add i64 %".16", %".186"
  %".191" = add i64 %".190", 0
  %".192" = inttoptr i64 %".191" to float*
  %".193" = load float, float* %".192"
  %".194" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".193", i32 0
  %".195" = shufflevector <8 x float> %".194", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".196" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".195", <8 x float> %".189", <8 x float> %".172")
  %".197" = add i64 %".19", %".186"
  %".198" = add i64 %".197", 0
  %".199" = inttoptr i64 %".198" to float*
  %".200" = load float, float* %".199"
  %".201" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".200", i32 0
  %".202" = shufflevector <8 x float> %".201", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".203" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".202", <8 x float> %".189", <8 x float> %".179")
  %".204" = add i64 %".103", 1
  br label %"head.3"
end.3:
  %".206" = mul i64 %".100", 4
  %".207" = mul i64 %".206", 32
  %".208" = add i64 %".99", %".207"
  %".209" = add i64 %".208", 0
  %".210" = mul i64 %".206", 4
  %".211" = add i64 %".97", %".210"
  %".212" = add i64 %".211", 0
  br label %"head.4"
head.4:
  %".214" = phi  i64 [0, %"end.3"], [%".242", %"body.4"]
  %".215" = phi  <8 x float> [%".104", %"end.3"], [%".234", %"body.4"]
  %".216" = phi  <8 x float> [%".105", %"end.3"], [%".241", %"body.4"]
  %".217" = icmp slt i64 %".214", %".101"
  br i1 %".217", label %"body.4", label %"end.4"
body.4:
  %".219" = mul i64 %".214", 32
  %".220" = add i64 %".209", %".219"
  %".221" = add i64 %".220", 0
  %".222" = mul i64 %".214", 4
  %".223" = add i64 %".212", %".222"
  %".224" = add i64 %".223", 0
  %".225" = add i64 %".221", 0
  %".226" = inttoptr i64 %".225" to <8 x float>*
  %".227" = load <8 x float>, <8 x float>* %".226", align 4
  %".228" = add i64 %".16", %".224"
  %".229" = add i64 %".228", 0
  %".230" = inttoptr i64 %".229" to float*
  %".231" = load float, float* %".230"
  %".232" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".231", i32 0
  %".233" = shufflevector <8 x float> %".232", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".234" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".233", <8 x float> %".227", <8 x float> %".215")
  %".235" = add i64 %".19", %".224"
  %".236" = add i64 %".235", 0
  %".237" = inttoptr i64 %".236" to float*
  %".238" = load float, float* %".237"
  %".239" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".238", i32 0
  %".240" = shufflevector <8 x float> %".239", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".241" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".240", <8 x float> %".227", <8 x float> %".216")
  %".242" = add i64 %".214", 1
  br label %"head.4"
end.4:
  %".244" = add i64 %".86", 1
  br label %"head.2"
partial:
  %".248" = inttoptr i64 %".3" to i64*
  %".249" = load i64, i64* %".248"
  %".250" = add i64 %".249", %".66"
  %".251" = add i64 %".250", 0
  %".252" = inttoptr i64 %".251" to <8 x float>*
  store <8 x float> %".87", <8 x float>* %".252", align 4
  %".254" = add i64 %".3", 8
  %".255" = inttoptr i64 %".254" to i64*
  %".256" = load i64, i64* %".255"
  %".257" = add i64 %".256", %".66"
  %".258" = add i64 %".257", 0
  %".259" = inttoptr i64 %".258" to <8 x float>*
  store <8 x float> %".88", <8 x float>* %".259", align 4
  br label %"end.5"
final:
  %".262" = inttoptr i64 %".4" to i64*
  %".263" = load i64, i64* %".262"
  %".264" = add i64 %".263", 0
  %".265" = inttoptr i64 %".264" to <8 x float>*
  %".266" = load <8 x float>, <8 x float>* %".265", align 4
  %".267" = fadd contract <8 x float> %".87", %".266"
  %".268" = fcmp olt <8 x float> %".267", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".269" = select  <8 x i1> %".268", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".267"
  %".270" = fcmp ole <8 x float> %".267", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".271" = select  <8 x i1> %".270", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".267"
  %".272" = inttoptr i64 %".3" to i64*
  %".273" = load i64, i64* %".272"
  %".274" = add i64 %".273", %".66"
  %".275" = add i64 %".274", 0
  %".276" = inttoptr i64 %".275" to <8 x float>*
  store <8 x float> %".271", <8 x float>* %".276", align 4
  %".278" = fadd contract <8 x float> %".88", %".266"
  %".279" = fcmp olt <8 x float> %".278", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".280" = select  <8 x i1> %".279", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".278"
  %".281" = fcmp ole <8 x float> %".278", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".282" = select  <8 x i1> %".281", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".278"
  %".283" = add i64 %".3", 8
  %".284" = inttoptr i64 %".283" to i64*
  %".285" = load i64, i64* %".284"
  %".286" = add i64 %".285", %".66"
  %".287" = add i64 %".286", 0
  %".288" = inttoptr i64 %".287" to <8 x float>*
  store <8 x float> %".282", <8 x float>* %".288", align 4
  br label %"end.5"
end.5:
  %".291" = add i64 %".31", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
