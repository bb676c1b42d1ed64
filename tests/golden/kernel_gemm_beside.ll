; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13")
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = inttoptr i64 %".1" to i64*
  %".18" = load i64, i64* %".17"
  %".19" = inttoptr i64 %".1" to i64*
  %".20" = load i64, i64* %".19"
  %".21" = mul i64 %".7", %".13"
  %".22" = inttoptr i64 %".11" to i64*
  %".23" = load i64, i64* %".22"
  br label %"head"
head:
  %".25" = phi  i64 [0, %"entry"], [%".650", %"end.1"]
  %".26" = icmp slt i64 %".25", %".23"
  br i1 %".26", label %"body", label %"end"
body:
  %".28" = add i64 %".11", 8
  %".29" = inttoptr i64 %".28" to i64*
  %".30" = load i64, i64* %".29"
  br label %"head.1"
end:
  ret void
head.1:
  %".32" = phi  i64 [0, %"body"], [%".648", %"end.5"]
  %".33" = icmp slt i64 %".32", %".30"
  br i1 %".33", label %"body.1", label %"end.1"
body.1:
  %".35" = add i64 %".11", 16
  %".36" = inttoptr i64 %".35" to i64*
  %".37" = load i64, i64* %".36"
  %".38" = add i64 %".11", 24
  %".39" = inttoptr i64 %".38" to i64*
  %".40" = load i64, i64* %".39"
  %".41" = mul i64 %".25", %".37"
  %".42" = mul i64 %".32", %".40"
  %".43" = add i64 %".41", %".42"
  %".44" = add i64 %".11", 32
  %".45" = inttoptr i64 %".44" to i64*
  %".46" = load i64, i64* %".45"
  %".47" = add i64 %".11", 40
  %".48" = inttoptr i64 %".47" to i64*
  %".49" = load i64, i64* %".48"
  %".50" = mul i64 %".25", %".46"
  %".51" = mul i64 %".32", %".49"
  %".52" = add i64 %".50", %".51"
  br label %"head.2"
end.1:
  %".650" = add i64 %".25", 1
  br label %"head"
head.2:
  %".54" = phi  i64 [0, %"body.1"], [%".314", %"end.4"]
  %".55" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".263", %"end.4"]
  %".56" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".264", %"end.4"]
  %".57" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".265", %"end.4"]
  %".58" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".266", %"end.4"]
  %".59" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".267", %"end.4"]
  %".60" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".268", %"end.4"]
  %".61" = icmp slt i64 %".54", %".6"
  br i1 %".61", label %"body.2", label %"end.2"
body.2:
  %".63" = mul i64 %".54", 16
  %".64" = add i64 %".5", %".63"
  %".65" = inttoptr i64 %".64" to i64*
  %".66" = load i64, i64* %".65"
  %".67" = add i64 %".66", %".43"
  %".68" = add i64 %".64", 8
  %".69" = inttoptr i64 %".68" to i64*
  %".70" = load i64, i64* %".69"
  %".71" = mul i64 %".70", %".13"
  %".72" = add i64 %".2", %".71"
  %".73" = sdiv i64 %".7", 4
  %".74" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".316" = icmp ne i64 %".8", 0
  br i1 %".316", label %"go", label %"again"
head.3:
  %".76" = phi  i64 [0, %"body.2"], [%".253", %"body.3"]
  %".77" = phi  <8 x float> [%".55", %"body.2"], [%".235", %"body.3"]
  %".78" = phi  <8 x float> [%".56", %"body.2"], [%".236", %"body.3"]
  %".79" = phi  <8 x float> [%".57", %"body.2"], [%".243", %"body.3"]
  %".80" = phi  <8 x float> [%".58", %"body.2"], [%".244", %"body.3"]
  %".81" = phi  <8 x float> [%".59", %"body.2"], [%".251", %"body.3"]
  %".82" = phi  <8 x float> [%".60", %"body.2"], [%".252", %"body.3"]
  %".83" = icmp slt i64 %".76", %".73"
  br i1 %".83", label %"body.3", label %"end.3"
body.3:
  %".85" = mul i64 %".76", 4
  %".86" = add i64 %".85", 0
  %".87" = mul i64 %".86", %".13"
  %".88" = add i64 %".72", %".87"
  %".89" = mul i64 %".86", %".12"
  %".90" = add i64 %".67", %".89"
  %".91" = add i64 %".88", 0
  %".92" = inttoptr i64 %".91" to <8 x float>*
  %".93" = load <8 x float>, <8 x float>* %".92", align 4
  %".94" = icmp ult i64 %".10", 8
  %".95" = select  i1 %".94", i64 %".10", i64 8
  %".96" = trunc i64 %".10" to i32
  %".97" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".96", i32 0
  %".98" = shufflevector <8 x i32> %".97", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".99" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".98"
  %".100" = add i64 %".88", 32
  %".101" = inttoptr i64 %".100" to <8 x float>*
  %".102" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".101", i32 4, <8 x i1> %".99", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".103" = add i64 %".16", %".90"
  %".104" = add i64 %".103", 0
  %".105" = inttoptr i64 %".104" to float*
  %".106" = load float, float* %".105"
  %".107" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".106", i32 0
  %".108" = shufflevector <8 x float> %".107", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".109" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".108", <8 x float> %".93", <8 x float> %".77")
  %".110" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".108", <8 x float> %".102", <8 x float> %".78")
  %".111" = add i64 %".18", %".90"
  %".112" = add i64 %".111", 4
  %".113" = inttoptr i64 %".112" to float*
  %".114" = load float, float* %".113"
  %".115" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".114", i32 0
  %".116" = shufflevector <8 x float> %".115", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".117" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".93", <8 x float> %".79")
  %".118" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".102", <8 x float> %".80")
  %".119" = add i64 %".20", %".90"
  %".120" = add i64 %".119", 8
  %".121" = inttoptr i64 %".120" to float*
  %".122" = load float, float* %".121"
  %".123" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".122", i32 0
  %".124" = shufflevector <8 x float> %".123", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".125" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".93", <8 x float> %".81")
  %".126" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".102", <8 x float> %".82")
  %".127" = mul i64 %".76", 4
  %".128" = add i64 %".127", 1
  %".129" = mul i64 %".128", %".13"
  %".130" = add i64 %".72", %".129"
  %".131" = mul i64 %".128", %".12"
  %".132" = add i64 %".67", %".131"
  %".133" = add i64 %".130", 0
  %".134" = inttoptr i64 %".133" to <8 x float>*
  %".135" = load <8 x float>, <8 x float>* %".134", align 4
  %".136" = icmp ult i64 %".10", 8
  %".137" = select  i1 %".136", i64 %".10", i64 8
  %".138" = trunc i64 %".10" to i32
  %".139" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".138", i32 0
  %".140" = shufflevector <8 x i32> %".139", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".141" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".140"
  %".142" = add i64 %".130", 32
  %".143" = inttoptr i64 %".142" to <8 x float>*
  %".144" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".143", i32 4, <8 x i1> %".141", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".145" = add i64 %".16", %".132"
  %".146" = add i64 %".145", 0
  %".147" = inttoptr i64 %".146" to float*
  %".148" = load float, float* %".147"
  %".149" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".148", i32 0
  %".150" = shufflevector <8 x float> %".149", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".151" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".135", <8 x float> %".109")
  %".152" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".144", <8 x float> %".110")
  %".153" = add i64 %".18", %".132"
  %".154" = add i64 %".153", 4
  %".155" = inttoptr i64 %".154" to float*
  %".156" = load float, float* %".155"
  %".157" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".156", i32 0
  %".158" = shufflevector <8 x float> %".157", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".159" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".135", <8 x float> %".117")
  %".160" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".144", <8 x float> %".118")
  %".161" = add i64 %".20", %".132"
  %".162" = add i64 %".161", 8
  %".163" = inttoptr i64 %".162" to float*
  %".164" = load float, float* %".163"
  %".165" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".164", i32 0
  %".166" = shufflevector <8 x float> %".165", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".167" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".135", <8 x float> %".125")
  %".168" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".144", <8 x float> %".126")
  %".169" = mul i64 %".76", 4
  %".170" = add i64 %".169", 2
  %".171" = mul i64 %".170", %".13"
  %".172" = add i64 %".72", %".171"
  %".173" = mul i64 %".170", %".12"
  %".174" = add i64 %".67", %".173"
  %".175" = add i64 %".172", 0
  %".176" = inttoptr i64 %".175" to <8 x float>*
  %".177" = load <8 x float>, <8 x float>* %".176", align 4
  %".178" = icmp ult i64 %".10", 8
  %".179" = select  i1 %".178", i64 %".10", i64 8
  %".180" = trunc i64 %".10" to i32
  %".181" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".180", i32 0
  %".182" = shufflevector <8 x i32> %".181", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".183" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".182"
  %".184" = add i64 %".172", 32
  %".185" = inttoptr i64 %".184" to <8 x float>*
  %".186" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".185", i32 4, <8 x i1> %".183", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".187" = add i64 %".16", %".174"
  %".188" = add i64 %".187", 0
  %".189" = inttoptr i64 %".188" to float*
  %".190" = load float, float* %".189"
  %".191" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".190", i32 0
  %".192" = shufflevector <8 x float> %".191", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".193" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".192", <8 x float> %".177", <8 x float> %".151")
  %".194" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".192", <8 x float> %".186", <8 x float> %".152")
  %".195" = add i64 %".18", %".174"
  %".196" = add i64 %".195", 4
  %".197" = inttoptr i64 %".196" to float*
  %".198" = load float, float* %".197"
  %".199" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".198", i32 0
  %".200" = shufflevector <8 x float> %".199", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".201" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".200", <8 x float> %".177", <8 x float> %".159")
  %".202" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".200", <8 x float> %".186", <8 x float> %".160")
  %".203" = add i64 %".20", %".174"
  %".204" = add i64 %".203", 8
  %".205" = inttoptr i64 %".204" to float*
  %".206" = load float, float* %".205"
  %".207" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".206", i32 0
  %".208" = shufflevector <8 x float> %".207", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".209" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".208", <8 x float> %".177", <8 x float> %".167")
  %".210" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".208", <8 x float> %".186", <8 x float> %".168")
  %".211" = mul i64 %".76", 4
  %".212" = add i64 %".211", 3
  %".213" = mul i64 %".212", %".13"
  %".214" = add i64 %".72", %".213"
  %".215" = mul i64 %".212", %".12"
  %".216" = add i64 %".67", %".215"
  %".217" = add i64 %".214", 0
  %".218" = inttoptr i64 %".217" to <8 x float>*
  %".219" = load <8 x float>, <8 x float>* %".218", align 4
  %".220" = icmp ult i64 %".10", 8
  %".221" = select  i1 %".220", i64 %".10", i64 8
  %".222" = trunc i64 %".10" to i32
  %".223" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".222", i32 0
  %".224" = shufflevector <8 x i32> %".223", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".225" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".224"
  %".226" = add i64 %".214", 32
  %".227" = inttoptr i64 %".226" to <8 x float>*
  %".228" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".227", i32 4, <8 x i1> %".225", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".229" = add i64 %".16", %".216"
  %".230" = add i64 %".229", 0
  %".231" = inttoptr i64 %".230" to float*
  %".232" = load float, float* %".231"
  %".233" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".232", i32 0
  %".234" = shufflevector <8 x float> %".233", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".235" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".234", <8 x float> %".219", <8 x float> %".193")
  %".236" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".234", <8 x float> %".228", <8 x float> %".194")
  %".237" = add i64 %".18", %".216"
  %".238" = add i64 %".237", 4
  %".239" = inttoptr i64 %".238" to float*
  %".240" = load float, float* %".239"
  %".241" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".240", i32 0
  %".242" = shufflevector <8 x float> %".241", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".243" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".242", <8 x float> %".219", <8 x float> %".201")
  %".244" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".242", <8 x float> %".228", <8 x float> %".202")
  %".245" = add i64 %".20", %".216"
  %".246" = add i64 %".245", 8
  %".247" = inttoptr i64 %".246" to float*
  %".248" = load float, float* %".247"
  %".249" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".248", i32 0
  %".250" = shufflevector <8 x float> %".249", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".251" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".250", <8 x float> %".219", <8 x float> %".209")
  %".252" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".250", <8 x float> %".228", <8 x float> %".210")
  %".253" = add i64 %".76", 1
  br label %"head.3"
end.3:
  %".255" = mul i64 %".73", 4
  %".256" = add i64 %".255", 0
  %".257" = mul i64 %".256", %".13"
  %".258" = add i64 %".72", %".257"
  %".259" = mul i64 %".256", %".12"
  %".260" = add i64 %".67", %".259"
  br label %"head.4"
head.4:
  %".262" = phi  i64 [0, %"end.3"], [%".312", %"body.4"]
  %".263" = phi  <8 x float> [%".77", %"end.3"], [%".294", %"body.4"]
  %".264" = phi  <8 x float> [%".78", %"end.3"], [%".295", %"body.4"]
  %".265" = phi  <8 x float> [%".79", %"end.3"], [%".302", %"body.4"]
  %".266" = phi  <8 x float> [%".80", %"end.3"], [%".303", %"body.4"]
  %".267" = phi  <8 x float> [%".81", %"end.3"], [%".310", %"body.4"]
  %".268" = phi  <8 x float> [%".82", %"end.3"], [%".311", %"body.4"]
  %".269" = icmp slt i64 %".262", %".74"
  br i1 %".269", label %"body.4", label %"end.4"
body.4:
  %".271" = add i64 %".262", 0
  %".272" = mul i64 %".271", %".13"
  %".273" = add i64 %".258", %".272"
  %".274" = mul i64 %".271", %".12"
  %".275" = add i64 %".260", %".274"
  %".276" = add i64 %".273", 0
  %".277" = inttoptr i64 %".276" to <8 x float>*
  %".278" = load <8 x float>, <8 x float>* %".277", align 4
  %".279" = icmp ult i64 %".10", 8
  %".280" = select  i1 %".279", i64 %".10", i64 8
  %".281" = trunc i64 %".10" to i32
  %".282" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".281", i32 0
  %".283" = shufflevector <8 x i32> %".282", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".284" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".283"
  %".285" = add i64 %".273", 32
  %".286" = inttoptr i64 %".285" to <8 x float>*
  %".287" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".286", i32 4, <8 x i1> %".284", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".288" = add i64 %".16", %".275"
  %".289" = add i64 %".288", 0
  %".290" = inttoptr i64 %".289" to float*
  %".291" = load float, float* %".290"
  %".292" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".291", i32 0
  %".293" = shufflevector <8 x float> %".292", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".294" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".293", <8 x float> %".278", <8 x float> %".263")
  %".295" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".293", <8 x float> %".287", <8 x float> %".264")
  %".296" = add i64 %".18", %".275"
  %".297" = add i64 %".296", 4
  %".298" = inttoptr i64 %".297" to float*
  %".299" = load float, float* %".298"
  %".300" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".299", i32 0
  %".301" = shufflevector <8 x float> %".300", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".302" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".301", <8 x float> %".278", <8 x float> %".265")
  %".303" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".301", <8 x float> %".287", <8 x float> %".266")
  %".304" = add i64 %".20", %".275"
  %".305" = add i64 %".304", 8
  %".306" = inttoptr i64 %".305" to float*
  %".307" = load float, float* %".306"
  %".308" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".307", i32 0
  %".309" = shufflevector <8 x float> %".308", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".310" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".309", <8 x float> %".278", <8 x float> %".267")
  %".311" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".309", <8 x float> %".287", <8 x float> %".268")
  %".312" = add i64 %".262", 1
  br label %"head.4"
end.4:
  %".314" = add i64 %".54", 1
  br label %"head.2"
again:
  %".318" = inttoptr i64 %".3" to i64*
  %".319" = load i64, i64* %".318"
  %".320" = add i64 %".319", %".52"
  %".321" = add i64 %".320", 0
  %".322" = inttoptr i64 %".321" to <8 x float>*
  %".323" = load <8 x float>, <8 x float>* %".322", align 4
  %".324" = icmp ult i64 %".10", 8
  %".325" = select  i1 %".324", i64 %".10", i64 8
  %".326" = trunc i64 %".10" to i32
  %".327" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".326", i32 0
  %".328" = shufflevector <8 x i32> %".327", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".329" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".328"
  %".330" = add i64 %".320", 32
  %".331" = inttoptr i64 %".330" to <8 x float>*
  %".332" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".331", i32 4, <8 x i1> %".329", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".333" = add i64 %".3", 8
  %".334" = inttoptr i64 %".333" to i64*
  %".335" = load i64, i64* %".334"
  %".336" = add i64 %".335", %".52"
  %".337" = add i64 %".336", 0
  %".338" = inttoptr i64 %".337" to <8 x float>*
  %".339" = load <8 x float>, <8 x float>* %".338", align 4
  %".340" = icmp ult i64 %".10", 8
  %".341" = select  i1 %".340", i64 %".10", i64 8
  %".342" = trunc i64 %".10" to i32
  %".343" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".342", i32 0
  %".344" = shufflevector <8 x i32> %".343", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".345" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".344"
  %".346" = add i64 %".336", 32
  %".347" = inttoptr i64 %".346" to <8 x float>*
  %".348" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".347", i32 4, <8 x i1> %".345", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".349" = add i64 %".3", 16
  %".350" = inttoptr i64 %".349" to i64*
  %".351" = load i64, i64* %".350"
  %".352" = add i64 %".351", %".52"
  %".353" = add i64 %".352", 0
  %".354" = inttoptr i64 %".353" to <8 x float>*
  %".355" = load <8 x float>, <8 x float>* %".354", align 4
  %".356" = icmp ult i64 %".10", 8
  %".357" = select  i1 %".356", i64 %".10", i64 8
  %".358" = trunc i64 %".10" to i32
  %".359" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".358", i32 0
  %".360" = shufflevector <8 x i32> %".359", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".361" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".360"
  %".362" = add i64 %".352", 32
  %".363" = inttoptr i64 %".362" to <8 x float>*
  %".364" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".363", i32 4, <8 x i1> %".361", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".366" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".323", %"again"]
  %".367" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".332", %"again"]
  %".368" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".339", %"again"]
  %".369" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".348", %"again"]
  %".370" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".355", %"again"]
  %".371" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".364", %"again"]
  %".372" = fadd <8 x float> %".55", %".366"
  %".373" = fadd <8 x float> %".56", %".367"
  %".374" = fadd <8 x float> %".57", %".368"
  %".375" = fadd <8 x float> %".58", %".369"
  %".376" = fadd <8 x float> %".59", %".370"
  %".377" = fadd <8 x float> %".60", %".371"
  %".378" = icmp ne i64 %".9", 0
  br i1 %".378", label %"final", label %"partial"
partial:
  %".380" = inttoptr i64 %".3" to i64*
  %".381" = load i64, i64* %".380"
  %".382" = add i64 %".381", %".52"
  %".383" = add i64 %".382", 0
  %".384" = inttoptr i64 %".383" to <8 x float>*
  store <8 x float> %".372", <8 x float>* %".384", align 4
  %".386" = add i64 %".3", 8
  %".387" = inttoptr i64 %".386" to i64*
  %".388" = load i64, i64* %".387"
  %".389" = add i64 %".388", %".52"
  %".390" = add i64 %".389", 0
  %".391" = inttoptr i64 %".390" to <8 x float>*
  store <8 x float> %".374", <8 x float>* %".391", align 4
  %".393" = add i64 %".3", 16
  %".394" = inttoptr i64 %".393" to i64*
  %".395" = load i64, i64* %".394"
  %".396" = add i64 %".395", %".52"
  %".397" = add i64 %".396", 0
  %".398" = inttoptr i64 %".397" to <8 x float>*
  store <8 x float> %".376", <8 x float>* %".398", align 4
  %".400" = icmp ult i64 %".10", 8
  %".401" = select  i1 %".400", i64 %".10", i64 8
  %".402" = trunc i64 %".10" to i32
  %".403" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".402", i32 0
  %".404" = shufflevector <8 x i32> %".403", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".405" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".404"
  %".406" = inttoptr i64 %".3" to i64*
  %".407" = load i64, i64* %".406"
  %".408" = add i64 %".407", %".52"
  %".409" = add i64 %".408", 32
  %".410" = inttoptr i64 %".409" to <8 x float>*
  %".411" = add i64 %".3", 8
  %".412" = inttoptr i64 %".411" to i64*
  %".413" = load i64, i64* %".412"
  %".414" = add i64 %".413", %".52"
  %".415" = add i64 %".414", 32
  %".416" = inttoptr i64 %".415" to <8 x float>*
  %".417" = add i64 %".3", 16
  %".418" = inttoptr i64 %".417" to i64*
  %".419" = load i64, i64* %".418"
  %".420" = add i64 %".419", %".52"
  %".421" = add i64 %".420", 32
  %".422" = inttoptr i64 %".421" to <8 x float>*
  %".423" = and i64 %".401", 8
  %".424" = icmp ne i64 %".423", 0
  br i1 %".424", label %"partial.if", label %"partial.endif"
final:
  %".514" = inttoptr i64 %".3" to i64*
  %".515" = load i64, i64* %".514"
  %".516" = add i64 %".515", %".52"
  %".517" = add i64 %".516", 0
  %".518" = inttoptr i64 %".517" to <8 x float>*
  store <8 x float> %".372", <8 x float>* %".518", align 4
  %".520" = add i64 %".3", 8
  %".521" = inttoptr i64 %".520" to i64*
  %".522" = load i64, i64* %".521"
  %".523" = add i64 %".522", %".52"
  %".524" = add i64 %".523", 0
  %".525" = inttoptr i64 %".524" to <8 x float>*
  store <8 x float> %".374", <8 x float>* %".525", align 4
  %".527" = add i64 %".3", 16
  %".528" = inttoptr i64 %".527" to i64*
  %".529" = load i64, i64* %".528"
  %".530" = add i64 %".529", %".52"
  %".531" = add i64 %".530", 0
  %".532" = inttoptr i64 %".531" to <8 x float>*
  store <8 x float> %".376", <8 x float>* %".532", align 4
  %".534" = icmp ult i64 %".10", 8
  %".535" = select  i1 %".534", i64 %".10", i64 8
  %".536" = trunc i64 %".10" to i32
  %".537" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".536", i32 0
  %".538" = shufflevector <8 x i32> %".537", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".539" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".538"
  %".540" = inttoptr i64 %".3" to i64*
  %".541" = load i64, i64* %".540"
  %".542" = add i64 %".541", %".52"
  %".543" = add i64 %".542", 32
  %".544" = inttoptr i64 %".543" to <8 x float>*
  %".545" = add i64 %".3", 8
  %".546" = inttoptr i64 %".545" to i64*
  %".547" = load i64, i64* %".546"
  %".548" = add i64 %".547", %".52"
  %".549" = add i64 %".548", 32
  %".550" = inttoptr i64 %".549" to <8 x float>*
  %".551" = add i64 %".3", 16
  %".552" = inttoptr i64 %".551" to i64*
  %".553" = load i64, i64* %".552"
  %".554" = add i64 %".553", %".52"
  %".555" = add i64 %".554", 32
  %".556" = inttoptr i64 %".555" to <8 x float>*
  %".557" = and i64 %".535", 8
  %".558" = icmp ne i64 %".557", 0
  br i1 %".558", label %"final.if", label %"final.endif"
end.5:
  %".648" = add i64 %".32", 1
  br label %"head.1"
partial.if:
  %".426" = add i64 %".409", 0
  %".427" = inttoptr i64 %".426" to <8 x float>*
  store <8 x float> %".373", <8 x float>* %".427", align 4
  %".429" = add i64 %".415", 0
  %".430" = inttoptr i64 %".429" to <8 x float>*
  store <8 x float> %".375", <8 x float>* %".430", align 4
  %".432" = add i64 %".421", 0
  %".433" = inttoptr i64 %".432" to <8 x float>*
  store <8 x float> %".377", <8 x float>* %".433", align 4
  br label %"partial.endif"
partial.endif:
  %".436" = select  i1 %".424", i64 32, i64 0
  %".437" = add i64 0, %".436"
  %".438" = select  i1 %".424", <8 x float> %".373", <8 x float> %".373"
  %".439" = select  i1 %".424", <8 x float> %".375", <8 x float> %".375"
  %".440" = select  i1 %".424", <8 x float> %".377", <8 x float> %".377"
  %".441" = and i64 %".401", 4
  %".442" = icmp ne i64 %".441", 0
  %".443" = shufflevector <8 x float> %".438", <8 x float> %".438", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".444" = shufflevector <8 x float> %".439", <8 x float> %".439", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".445" = shufflevector <8 x float> %".440", <8 x float> %".440", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".446" = shufflevector <8 x float> %".438", <8 x float> %".438", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".447" = shufflevector <8 x float> %".439", <8 x float> %".439", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".448" = shufflevector <8 x float> %".440", <8 x float> %".440", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".442", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".450" = add i64 %".409", %".437"
  %".451" = inttoptr i64 %".450" to <4 x float>*
  store <4 x float> %".443", <4 x float>* %".451", align 4
  %".453" = add i64 %".415", %".437"
  %".454" = inttoptr i64 %".453" to <4 x float>*
  store <4 x float> %".444", <4 x float>* %".454", align 4
  %".456" = add i64 %".421", %".437"
  %".457" = inttoptr i64 %".456" to <4 x float>*
  store <4 x float> %".445", <4 x float>* %".457", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".460" = select  i1 %".442", i64 16, i64 0
  %".461" = add i64 %".437", %".460"
  %".462" = select  i1 %".442", <4 x float> %".446", <4 x float> %".443"
  %".463" = select  i1 %".442", <4 x float> %".447", <4 x float> %".444"
  %".464" = select  i1 %".442", <4 x float> %".448", <4 x float> %".445"
  %".465" = and i64 %".401", 2
  %".466" = icmp ne i64 %".465", 0
  %".467" = shufflevector <4 x float> %".462", <4 x float> %".462", <2 x i32> <i32 0, i32 1>
  %".468" = shufflevector <4 x float> %".463", <4 x float> %".463", <2 x i32> <i32 0, i32 1>
  %".469" = shufflevector <4 x float> %".464", <4 x float> %".464", <2 x i32> <i32 0, i32 1>
  %".470" = shufflevector <4 x float> %".462", <4 x float> %".462", <2 x i32> <i32 2, i32 3>
  %".471" = shufflevector <4 x float> %".463", <4 x float> %".463", <2 x i32> <i32 2, i32 3>
  %".472" = shufflevector <4 x float> %".464", <4 x float> %".464", <2 x i32> <i32 2, i32 3>
  br i1 %".466", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".474" = add i64 %".409", %".461"
  %".475" = inttoptr i64 %".474" to <2 x float>*
  store <2 x float> %".467", <2 x float>* %".475", align 4
  %".477" = add i64 %".415", %".461"
  %".478" = inttoptr i64 %".477" to <2 x float>*
  store <2 x float> %".468", <2 x float>* %".478", align 4
  %".480" = add i64 %".421", %".461"
  %".481" = inttoptr i64 %".480" to <2 x float>*
  store <2 x float> %".469", <2 x float>* %".481", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".484" = select  i1 %".466", i64 8, i64 0
  %".485" = add i64 %".461", %".484"
  %".486" = select  i1 %".466", <2 x float> %".470", <2 x float> %".467"
  %".487" = select  i1 %".466", <2 x float> %".471", <2 x float> %".468"
  %".488" = select  i1 %".466", <2 x float> %".472", <2 x float> %".469"
  %".489" = and i64 %".401", 1
  %".490" = icmp ne i64 %".489", 0
  %".491" = shufflevector <2 x float> %".486", <2 x float> %".486", <1 x i32> <i32 0>
  %".492" = shufflevector <2 x float> %".487", <2 x float> %".487", <1 x i32> <i32 0>
  %".493" = shufflevector <2 x float> %".488", <2 x float> %".488", <1 x i32> <i32 0>
  %".494" = shufflevector <2 x float> %".486", <2 x float> %".486", <1 x i32> <i32 1>
  %".495" = shufflevector <2 x float> %".487", <2 x float> %".487", <1 x i32> <i32 1>
  %".496" = shufflevector <2 x float> %".488", <2 x float> %".488", <1 x i32> <i32 1>
  br i1 %".490", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".498" = add i64 %".409", %".485"
  %".499" = inttoptr i64 %".498" to <1 x float>*
  store <1 x float> %".491", <1 x float>* %".499", align 4
  %".501" = add i64 %".415", %".485"
  %".502" = inttoptr i64 %".501" to <1 x float>*
  store <1 x float> %".492", <1 x float>* %".502", align 4
  %".504" = add i64 %".421", %".485"
  %".505" = inttoptr i64 %".504" to <1 x float>*
  store <1 x float> %".493", <1 x float>* %".505", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".508" = select  i1 %".490", i64 4, i64 0
  %".509" = add i64 %".485", %".508"
  %".510" = select  i1 %".490", <1 x float> %".494", <1 x float> %".491"
  %".511" = select  i1 %".490", <1 x float> %".495", <1 x float> %".492"
  %".512" = select  i1 %".490", <1 x float> %".496", <1 x float> %".493"
  br label %"end.5"
final.if:
  %".560" = add i64 %".543", 0
  %".561" = inttoptr i64 %".560" to <8 x float>*
  store <8 x float> %".373", <8 x float>* %".561", align 4
  %".563" = add i64 %".549", 0
  %".564" = inttoptr i64 %".563" to <8 x float>*
  store <8 x float> %".375", <8 x float>* %".564", align 4
  %".566" = add i64 %".555", 0
  %".567" = inttoptr i64 %".566" to <8 x float>*
  store <8 x float> %".377", <8 x float>* %".567", align 4
  br label %"final.endif"
final.endif:
  %".570" = select  i1 %".558", i64 32, i64 0
  %".571" = add i64 0, %".570"
  %".572" = select  i1 %".558", <8 x float> %".373", <8 x float> %".373"
  %".573" = select  i1 %".558", <8 x float> %".375", <8 x float> %".375"
  %".574" = select  i1 %".558", <8 x float> %".377", <8 x float> %".377"
  %".575" = and i64 %".535", 4
  %".576" = icmp ne i64 %".575", 0
  %".577" = shufflevector <8 x float> %".572", <8 x float> %".572", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".578" = shufflevector <8 x float> %".573", <8 x float> %".573", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".579" = shufflevector <8 x float> %".574", <8 x float> %".574", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".580" = shufflevector <8 x float> %".572", <8 x float> %".572", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".581" = shufflevector <8 x float> %".573", <8 x float> %".573", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".582" = shufflevector <8 x float> %".574", <8 x float> %".574", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".576", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".584" = add i64 %".543", %".571"
  %".585" = inttoptr i64 %".584" to <4 x float>*
  store <4 x float> %".577", <4 x float>* %".585", align 4
  %".587" = add i64 %".549", %".571"
  %".588" = inttoptr i64 %".587" to <4 x float>*
  store <4 x float> %".578", <4 x float>* %".588", align 4
  %".590" = add i64 %".555", %".571"
  %".591" = inttoptr i64 %".590" to <4 x float>*
  store <4 x float> %".579", <4 x float>* %".591", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".594" = select  i1 %".576", i64 16, i64 0
  %".595" = add i64 %".571", %".594"
  %".596" = select  i1 %".576", <4 x float> %".580", <4 x float> %".577"
  %".597" = select  i1 %".576", <4 x float> %".581", <4 x float> %".578"
  %".598" = select  i1 %".576", <4 x float> %".582", <4 x float> %".579"
  %".599" = and i64 %".535", 2
  %".600" = icmp ne i64 %".599", 0
  %".601" = shufflevector <4 x float> %".596", <4 x float> %".596", <2 x i32> <i32 0, i32 1>
  %".602" = shufflevector <4 x float> %".597", <4 x float> %".597", <2 x i32> <i32 0, i32 1>
  %".603" = shufflevector <4 x float> %".598", <4 x float> %".598", <2 x i32> <i32 0, i32 1>
  %".604" = shufflevector <4 x float> %".596", <4 x float> %".596", <2 x i32> <i32 2, i32 3>
  %".605" = shufflevector <4 x float> %".597", <4 x float> %".597", <2 x i32> <i32 2, i32 3>
  %".606" = shufflevector <4 x float> %".598", <4 x float> %".598", <2 x i32> <i32 2, i32 3>
  br i1 %".600", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".608" = add i64 %".543", %".595"
  %".609" = inttoptr i64 %".608" to <2 x float>*
  store <2 x float> %".601", <2 x float>* %".609", align 4
  %".611" = add i64 %".549", %".595"
  %".612" = inttoptr i64 %".611" to <2 x float>*
  store <2 x float> %".602", <2 x float>* %".612", align 4
  %".614" = add i64 %".555", %".595"
  %".615" = inttoptr i64 %".614" to <2 x float>*
  store <2 x float> %".603", <2 x float>* %".615", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".618" = select  i1 %".600", i64 8, i64 0
  %".619" = add i64 %".595", %".618"
  %".620" = select  i1 %".600", <2 x float> %".604", <2 x float> %".601"
  %".621" = select  i1 %".600", <2 x float> %".605", <2 x float> %".602"
  %".622" = select  i1 %".600", <2 x float> %".606", <2 x float> %".603"
  %".623" = and i64 %".535", 1
  %".624" = icmp ne i64 %".623", 0
  %".625" = shufflevector <2 x float> %".620", <2 x float> %".620", <1 x i32> <i32 0>
  %".626" = shufflevector <2 x float> %".621", <2 x float> %".621", <1 x i32> <i32 0>
  %".627" = shufflevector <2 x float> %".622", <2 x float> %".622", <1 x i32> <i32 0>
  %".628" = shufflevector <2 x float> %".620", <2 x float> %".620", <1 x i32> <i32 1>
  %".629" = shufflevector <2 x float> %".621", <2 x float> %".621", <1 x i32> <i32 1>
  %".630" = shufflevector <2 x float> %".622", <2 x float> %".622", <1 x i32> <i32 1>
  br i1 %".624", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".632" = add i64 %".543", %".619"
  %".633" = inttoptr i64 %".632" to <1 x float>*
  store <1 x float> %".625", <1 x float>* %".633", align 4
  %".635" = add i64 %".549", %".619"
  %".636" = inttoptr i64 %".635" to <1 x float>*
  store <1 x float> %".626", <1 x float>* %".636", align 4
  %".638" = add i64 %".555", %".619"
  %".639" = inttoptr i64 %".638" to <1 x float>*
  store <1 x float> %".627", <1 x float>* %".639", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".642" = select  i1 %".624", i64 4, i64 0
  %".643" = add i64 %".619", %".642"
  %".644" = select  i1 %".624", <1 x float> %".628", <1 x float> %".625"
  %".645" = select  i1 %".624", <1 x float> %".629", <1 x float> %".626"
  %".646" = select  i1 %".624", <1 x float> %".630", <1 x float> %".627"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
