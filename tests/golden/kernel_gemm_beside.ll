; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14", i64 %".15", i64 %".16")
{
entry:
  %".18" = inttoptr i64 %".1" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = inttoptr i64 %".1" to i64*
  %".21" = load i64, i64* %".20"
  %".22" = inttoptr i64 %".1" to i64*
  %".23" = load i64, i64* %".22"
  %".24" = mul i64 %".7", %".16"
  br label %"head"
head:
  %".26" = phi  i64 [0, %"entry"], [%".432", %"end.4"]
  %".27" = icmp slt i64 %".26", %".11"
  br i1 %".27", label %"body", label %"end"
body:
  %".29" = mul i64 %".26", %".12"
  %".30" = mul i64 %".26", %".13"
  br label %"head.1"
end:
  ret void
head.1:
  %".32" = phi  i64 [0, %"body"], [%".282", %"end.3"]
  %".33" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".233", %"end.3"]
  %".34" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".234", %"end.3"]
  %".35" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".235", %"end.3"]
  %".36" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".236", %"end.3"]
  %".37" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".237", %"end.3"]
  %".38" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".238", %"end.3"]
  %".39" = icmp slt i64 %".32", %".6"
  br i1 %".39", label %"body.1", label %"end.1"
body.1:
  %".41" = mul i64 %".32", 16
  %".42" = add i64 %".5", %".41"
  %".43" = inttoptr i64 %".42" to i64*
  %".44" = load i64, i64* %".43"
  %".45" = add i64 %".44", %".29"
  %".46" = add i64 %".42", 8
  %".47" = inttoptr i64 %".46" to i64*
  %".48" = load i64, i64* %".47"
  %".49" = mul i64 %".48", %".16"
  %".50" = add i64 %".2", %".49"
  %".51" = sdiv i64 %".7", 4
  %".52" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".284" = icmp ne i64 %".8", 0
  br i1 %".284", label %"go", label %"again"
head.2:
  %".54" = phi  i64 [0, %"body.1"], [%".223", %"body.2"]
  %".55" = phi  <8 x float> [%".33", %"body.1"], [%".205", %"body.2"]
  %".56" = phi  <8 x float> [%".34", %"body.1"], [%".206", %"body.2"]
  %".57" = phi  <8 x float> [%".35", %"body.1"], [%".213", %"body.2"]
  %".58" = phi  <8 x float> [%".36", %"body.1"], [%".214", %"body.2"]
  %".59" = phi  <8 x float> [%".37", %"body.1"], [%".221", %"body.2"]
  %".60" = phi  <8 x float> [%".38", %"body.1"], [%".222", %"body.2"]
  %".61" = icmp slt i64 %".54", %".51"
  br i1 %".61", label %"body.2", label %"end.2"
body.2:
  %".63" = mul i64 %".54", 4
  %".64" = add i64 %".63", 0
  %".65" = mul i64 %".64", %".16"
  %".66" = add i64 %".50", %".65"
  %".67" = mul i64 %".64", %".15"
  %".68" = add i64 %".45", %".67"
  %".69" = add i64 %".66", 0
  %".70" = inttoptr i64 %".69" to <8 x float>*
  %".71" = load <8 x float>, <8 x float>* %".70", align 4
  %".72" = trunc i64 %".10" to i32
  %".73" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".72", i32 0
  %".74" = shufflevector <8 x i32> %".73", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".75" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".74"
  %".76" = add i64 %".66", 32
  %".77" = inttoptr i64 %".76" to <8 x float>*
  %".78" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".77", i32 4, <8 x i1> %".75", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".79" = add i64 %".19", %".68"
  %".80" = add i64 %".79", 0
  %".81" = inttoptr i64 %".80" to float*
  %".82" = load float, float* %".81"
  %".83" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".82", i32 0
  %".84" = shufflevector <8 x float> %".83", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".85" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".84", <8 x float> %".71", <8 x float> %".55")
  %".86" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".84", <8 x float> %".78", <8 x float> %".56")
  %".87" = add i64 %".21", %".68"
  %".88" = add i64 %".87", 4
  %".89" = inttoptr i64 %".88" to float*
  %".90" = load float, float* %".89"
  %".91" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".90", i32 0
  %".92" = shufflevector <8 x float> %".91", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".93" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".92", <8 x float> %".71", <8 x float> %".57")
  %".94" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".92", <8 x float> %".78", <8 x float> %".58")
  %".95" = add i64 %".23", %".68"
  %".96" = add i64 %".95", 8
  %".97" = inttoptr i64 %".96" to float*
  %".98" = load float, float* %".97"
  %".99" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".98", i32 0
  %".100" = shufflevector <8 x float> %".99", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".101" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".100", <8 x float> %".71", <8 x float> %".59")
  %".102" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".100", <8 x float> %".78", <8 x float> %".60")
  %".103" = mul i64 %".54", 4
  %".104" = add i64 %".103", 1
  %".105" = mul i64 %".104", %".16"
  %".106" = add i64 %".50", %".105"
  %".107" = mul i64 %".104", %".15"
  %".108" = add i64 %".45", %".107"
  %".109" = add i64 %".106", 0
  %".110" = inttoptr i64 %".109" to <8 x float>*
  %".111" = load <8 x float>, <8 x float>* %".110", align 4
  %".112" = trunc i64 %".10" to i32
  %".113" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".112", i32 0
  %".114" = shufflevector <8 x i32> %".113", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".115" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".114"
  %".116" = add i64 %".106", 32
  %".117" = inttoptr i64 %".116" to <8 x float>*
  %".118" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".117", i32 4, <8 x i1> %".115", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".119" = add i64 %".19", %".108"
  %".120" = add i64 %".119", 0
  %".121" = inttoptr i64 %".120" to float*
  %".122" = load float, float* %".121"
  %".123" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".122", i32 0
  %".124" = shufflevector <8 x float> %".123", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".125" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".111", <8 x float> %".85")
  %".126" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".118", <8 x float> %".86")
  %".127" = add i64 %".21", %".108"
  %".128" = add i64 %".127", 4
  %".129" = inttoptr i64 %".128" to float*
  %".130" = load float, float* %".129"
  %".131" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".130", i32 0
  %".132" = shufflevector <8 x float> %".131", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".133" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".132", <8 x float> %".111", <8 x float> %".93")
  %".134" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".132", <8 x float> %".118", <8 x float> %".94")
  %".135" = add i64 %".23", %".108"
  %".136" = add i64 %".135", 8
  %".137" = inttoptr i64 %".136" to float*
  %".138" = load float, float* %".137"
  %".139" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".138", i32 0
  %".140" = shufflevector <8 x float> %".139", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".141" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".140", <8 x float> %".111", <8 x float> %".101")
  %".142" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".140", <8 x float> %".118", <8 x float> %".102")
  %".143" = mul i64 %".54", 4
  %".144" = add i64 %".143", 2
  %".145" = mul i64 %".144", %".16"
  %".146" = add i64 %".50", %".145"
  %".147" = mul i64 %".144", %".15"
  %".148" = add i64 %".45", %".147"
  %".149" = add i64 %".146", 0
  %".150" = inttoptr i64 %".149" to <8 x float>*
  %".151" = load <8 x float>, <8 x float>* %".150", align 4
  %".152" = trunc i64 %".10" to i32
  %".153" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".152", i32 0
  %".154" = shufflevector <8 x i32> %".153", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".154"
  %".156" = add i64 %".146", 32
  %".157" = inttoptr i64 %".156" to <8 x float>*
  %".158" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".157", i32 4, <8 x i1> %".155", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".159" = add i64 %".19", %".148"
  %".160" = add i64 %".159", 0
  %".161" = inttoptr i64 %".160" to float*
  %".162" = load float, float* %".161"
  %".163" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".162", i32 0
  %".164" = shufflevector <8 x float> %".163", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".165" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".164", <8 x float> %".151", <8 x float> %".125")
  %".166" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".164", <8 x float> %".158", <8 x float> %".126")
  %".167" = add i64 %".21", %".148"
  %".168" = add i64 %".167", 4
  %".169" = inttoptr i64 %".168" to float*
  %".170" = load float, float* %".169"
  %".171" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".170", i32 0
  %".172" = shufflevector <8 x float> %".171", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".173" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".172", <8 x float> %".151", <8 x float> %".133")
  %".174" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".172", <8 x float> %".158", <8 x float> %".134")
  %".175" = add i64 %".23", %".148"
  %".176" = add i64 %".175", 8
  %".177" = inttoptr i64 %".176" to float*
  %".178" = load float, float* %".177"
  %".179" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".178", i32 0
  %".180" = shufflevector <8 x float> %".179", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".181" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".180", <8 x float> %".151", <8 x float> %".141")
  %".182" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".180", <8 x float> %".158", <8 x float> %".142")
  %".183" = mul i64 %".54", 4
  %".184" = add i64 %".183", 3
  %".185" = mul i64 %".184", %".16"
  %".186" = add i64 %".50", %".185"
  %".187" = mul i64 %".184", %".15"
  %".188" = add i64 %".45", %".187"
  %".189" = add i64 %".186", 0
  %".190" = inttoptr i64 %".189" to <8 x float>*
  %".191" = load <8 x float>, <8 x float>* %".190", align 4
  %".192" = trunc i64 %".10" to i32
  %".193" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".192", i32 0
  %".194" = shufflevector <8 x i32> %".193", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".195" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".194"
  %".196" = add i64 %".186", 32
  %".197" = inttoptr i64 %".196" to <8 x float>*
  %".198" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".197", i32 4, <8 x i1> %".195", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".199" = add i64 %".19", %".188"
  %".200" = add i64 %".199", 0
  %".201" = inttoptr i64 %".200" to float*
  %".202" = load float, float* %".201"
  %".203" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".202", i32 0
  %".204" = shufflevector <8 x float> %".203", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".205" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".204", <8 x float> %".191", <8 x float> %".165")
  %".206" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".204", <8 x float> %".198", <8 x float> %".166")
  %".207" = add i64 %".21", %".188"
  %".208" = add i64 %".207", 4
  %".209" = inttoptr i64 %".208" to float*
  %".210" = load float, float* %".209"
  %".211" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".210", i32 0
  %".212" = shufflevector <8 x float> %".211", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".213" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".191", <8 x float> %".173")
  %".214" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".198", <8 x float> %".174")
  %".215" = add i64 %".23", %".188"
  %".216" = add i64 %".215", 8
  %".217" = inttoptr i64 %".216" to float*
  %".218" = load float, float* %".217"
  %".219" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".218", i32 0
  %".220" = shufflevector <8 x float> %".219", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".221" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".220", <8 x float> %".191", <8 x float> %".181")
  %".222" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".220", <8 x float> %".198", <8 x float> %".182")
  %".223" = add i64 %".54", 1
  br label %"head.2"
end.2:
  %".225" = mul i64 %".51", 4
  %".226" = add i64 %".225", 0
  %".227" = mul i64 %".226", %".16"
  %".228" = add i64 %".50", %".227"
  %".229" = mul i64 %".226", %".15"
  %".230" = add i64 %".45", %".229"
  br label %"head.3"
head.3:
  %".232" = phi  i64 [0, %"end.2"], [%".280", %"body.3"]
  %".233" = phi  <8 x float> [%".55", %"end.2"], [%".262", %"body.3"]
  %".234" = phi  <8 x float> [%".56", %"end.2"], [%".263", %"body.3"]
  %".235" = phi  <8 x float> [%".57", %"end.2"], [%".270", %"body.3"]
  %".236" = phi  <8 x float> [%".58", %"end.2"], [%".271", %"body.3"]
  %".237" = phi  <8 x float> [%".59", %"end.2"], [%".278", %"body.3"]
  %".238" = phi  <8 x float> [%".60", %"end.2"], [%".279", %"body.3"]
  %".239" = icmp slt i64 %".232", %".52"
  br i1 %".239", label %"body.3", label %"end.3"
body.3:
  %".241" = add i64 %".232", 0
  %".242" = mul i64 %".241", %".16"
  %".243" = add i64 %".228", %".242"
  %".244" = mul i64 %".241", %".15"
  %".245" = add i64 %".230", %".244"
  %".246" = add i64 %".243", 0
  %".247" = inttoptr i64 %".246" to <8 x float>*
  %".248" = load <8 x float>, <8 x float>* %".247", align 4
  %".249" = trunc i64 %".10" to i32
  %".250" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".249", i32 0
  %".251" = shufflevector <8 x i32> %".250", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".252" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".251"
  %".253" = add i64 %".243", 32
  %".254" = inttoptr i64 %".253" to <8 x float>*
  %".255" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".254", i32 4, <8 x i1> %".252", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".256" = add i64 %".19", %".245"
  %".257" = add i64 %".256", 0
  %".258" = inttoptr i64 %".257" to float*
  %".259" = load float, float* %".258"
  %".260" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".259", i32 0
  %".261" = shufflevector <8 x float> %".260", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".262" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".261", <8 x float> %".248", <8 x float> %".233")
  %".263" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".261", <8 x float> %".255", <8 x float> %".234")
  %".264" = add i64 %".21", %".245"
  %".265" = add i64 %".264", 4
  %".266" = inttoptr i64 %".265" to float*
  %".267" = load float, float* %".266"
  %".268" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".267", i32 0
  %".269" = shufflevector <8 x float> %".268", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".270" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".269", <8 x float> %".248", <8 x float> %".235")
  %".271" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".269", <8 x float> %".255", <8 x float> %".236")
  %".272" = add i64 %".23", %".245"
  %".273" = add i64 %".272", 8
  %".274" = inttoptr i64 %".273" to float*
  %".275" = load float, float* %".274"
  %".276" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".275", i32 0
  %".277" = shufflevector <8 x float> %".276", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".278" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".277", <8 x float> %".248", <8 x float> %".237")
  %".279" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".277", <8 x float> %".255", <8 x float> %".238")
  %".280" = add i64 %".232", 1
  br label %"head.3"
end.3:
  %".282" = add i64 %".32", 1
  br label %"head.1"
again:
  %".286" = inttoptr i64 %".3" to i64*
  %".287" = load i64, i64* %".286"
  %".288" = add i64 %".287", %".30"
  %".289" = add i64 %".288", 0
  %".290" = inttoptr i64 %".289" to <8 x float>*
  %".291" = load <8 x float>, <8 x float>* %".290", align 4
  %".292" = trunc i64 %".10" to i32
  %".293" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".292", i32 0
  %".294" = shufflevector <8 x i32> %".293", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".295" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".294"
  %".296" = add i64 %".288", 32
  %".297" = inttoptr i64 %".296" to <8 x float>*
  %".298" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".297", i32 4, <8 x i1> %".295", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".299" = add i64 %".3", 8
  %".300" = inttoptr i64 %".299" to i64*
  %".301" = load i64, i64* %".300"
  %".302" = add i64 %".301", %".30"
  %".303" = add i64 %".302", 0
  %".304" = inttoptr i64 %".303" to <8 x float>*
  %".305" = load <8 x float>, <8 x float>* %".304", align 4
  %".306" = trunc i64 %".10" to i32
  %".307" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".306", i32 0
  %".308" = shufflevector <8 x i32> %".307", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".309" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".308"
  %".310" = add i64 %".302", 32
  %".311" = inttoptr i64 %".310" to <8 x float>*
  %".312" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".311", i32 4, <8 x i1> %".309", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".313" = add i64 %".3", 16
  %".314" = inttoptr i64 %".313" to i64*
  %".315" = load i64, i64* %".314"
  %".316" = add i64 %".315", %".30"
  %".317" = add i64 %".316", 0
  %".318" = inttoptr i64 %".317" to <8 x float>*
  %".319" = load <8 x float>, <8 x float>* %".318", align 4
  %".320" = trunc i64 %".10" to i32
  %".321" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".320", i32 0
  %".322" = shufflevector <8 x i32> %".321", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".323" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".322"
  %".324" = add i64 %".316", 32
  %".325" = inttoptr i64 %".324" to <8 x float>*
  %".326" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".325", i32 4, <8 x i1> %".323", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".328" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".291", %"again"]
  %".329" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".298", %"again"]
  %".330" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".305", %"again"]
  %".331" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".312", %"again"]
  %".332" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".319", %"again"]
  %".333" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".326", %"again"]
  %".334" = fadd <8 x float> %".33", %".328"
  %".335" = fadd <8 x float> %".34", %".329"
  %".336" = fadd <8 x float> %".35", %".330"
  %".337" = fadd <8 x float> %".36", %".331"
  %".338" = fadd <8 x float> %".37", %".332"
  %".339" = fadd <8 x float> %".38", %".333"
  %".340" = icmp ne i64 %".9", 0
  br i1 %".340", label %"final", label %"partial"
partial:
  %".342" = inttoptr i64 %".3" to i64*
  %".343" = load i64, i64* %".342"
  %".344" = add i64 %".343", %".30"
  %".345" = add i64 %".344", 0
  %".346" = inttoptr i64 %".345" to <8 x float>*
  store <8 x float> %".334", <8 x float>* %".346", align 4
  %".348" = add i64 %".3", 8
  %".349" = inttoptr i64 %".348" to i64*
  %".350" = load i64, i64* %".349"
  %".351" = add i64 %".350", %".30"
  %".352" = add i64 %".351", 0
  %".353" = inttoptr i64 %".352" to <8 x float>*
  store <8 x float> %".336", <8 x float>* %".353", align 4
  %".355" = add i64 %".3", 16
  %".356" = inttoptr i64 %".355" to i64*
  %".357" = load i64, i64* %".356"
  %".358" = add i64 %".357", %".30"
  %".359" = add i64 %".358", 0
  %".360" = inttoptr i64 %".359" to <8 x float>*
  store <8 x float> %".338", <8 x float>* %".360", align 4
  %".362" = trunc i64 %".10" to i32
  %".363" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".362", i32 0
  %".364" = shufflevector <8 x i32> %".363", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".365" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".364"
  %".366" = inttoptr i64 %".3" to i64*
  %".367" = load i64, i64* %".366"
  %".368" = add i64 %".367", %".30"
  %".369" = add i64 %".368", 32
  %".370" = inttoptr i64 %".369" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".335", <8 x float>* %".370", i32 4, <8 x i1> %".365")
  %".372" = add i64 %".3", 8
  %".373" = inttoptr i64 %".372" to i64*
  %".374" = load i64, i64* %".373"
  %".375" = add i64 %".374", %".30"
  %".376" = add i64 %".375", 32
  %".377" = inttoptr i64 %".376" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".337", <8 x float>* %".377", i32 4, <8 x i1> %".365")
  %".379" = add i64 %".3", 16
  %".380" = inttoptr i64 %".379" to i64*
  %".381" = load i64, i64* %".380"
  %".382" = add i64 %".381", %".30"
  %".383" = add i64 %".382", 32
  %".384" = inttoptr i64 %".383" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".339", <8 x float>* %".384", i32 4, <8 x i1> %".365")
  br label %"end.4"
final:
  %".387" = inttoptr i64 %".3" to i64*
  %".388" = load i64, i64* %".387"
  %".389" = add i64 %".388", %".30"
  %".390" = add i64 %".389", 0
  %".391" = inttoptr i64 %".390" to <8 x float>*
  store <8 x float> %".334", <8 x float>* %".391", align 4
  %".393" = add i64 %".3", 8
  %".394" = inttoptr i64 %".393" to i64*
  %".395" = load i64, i64* %".394"
  %".396" = add i64 %".395", %".30"
  %".397" = add i64 %".396", 0
  %".398" = inttoptr i64 %".397" to <8 x float>*
  store <8 x float> %".336", <8 x float>* %".398", align 4
  %".400" = add i64 %".3", 16
  %".401" = inttoptr i64 %".400" to i64*
  %".402" = load i64, i64* %".401"
  %".403" = add i64 %".402", %".30"
  %".404" = add i64 %".403", 0
  %".405" = inttoptr i64 %".404" to <8 x float>*
  store <8 x float> %".338", <8 x float>* %".405", align 4
  %".407" = trunc i64 %".10" to i32
  %".408" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".407", i32 0
  %".409" = shufflevector <8 x i32> %".408", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".410" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".409"
  %".411" = inttoptr i64 %".3" to i64*
  %".412" = load i64, i64* %".411"
  %".413" = add i64 %".412", %".30"
  %".414" = add i64 %".413", 32
  %".415" = inttoptr i64 %".414" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".335", <8 x float>* %".415", i32 4, <8 x i1> %".410")
  %".417" = add i64 %".3", 8
  %".418" = inttoptr i64 %".417" to i64*
  %".419" = load i64, i64* %".418"
  %".420" = add i64 %".419", %".30"
  %".421" = add i64 %".420", 32
  %".422" = inttoptr i64 %".421" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".337", <8 x float>* %".422", i32 4, <8 x i1> %".410")
  %".424" = add i64 %".3", 16
  %".425" = inttoptr i64 %".424" to i64*
  %".426" = load i64, i64* %".425"
  %".427" = add i64 %".426", %".30"
  %".428" = add i64 %".427", 32
  %".429" = inttoptr i64 %".428" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".339", <8 x float>* %".429", i32 4, <8 x i1> %".410")
  br label %"end.4"
end.4:
  %".432" = add i64 %".26", 1
  br label %"head"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")

declare void @"llvm.masked.store.v8f32.p0"(<8 x float> %".1", <8 x float>* %".2", i32 %".3", <8 x i1> %".4")
