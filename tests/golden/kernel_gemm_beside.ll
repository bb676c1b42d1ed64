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
  %".26" = phi  i64 [0, %"entry"], [%".626", %"end.4"]
  %".27" = icmp slt i64 %".26", %".11"
  br i1 %".27", label %"body", label %"end"
body:
  %".29" = mul i64 %".26", %".12"
  %".30" = mul i64 %".26", %".13"
  br label %"head.1"
end:
  ret void
head.1:
  %".32" = phi  i64 [0, %"body"], [%".292", %"end.3"]
  %".33" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".241", %"end.3"]
  %".34" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".242", %"end.3"]
  %".35" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".243", %"end.3"]
  %".36" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".244", %"end.3"]
  %".37" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".245", %"end.3"]
  %".38" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".246", %"end.3"]
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
  %".294" = icmp ne i64 %".8", 0
  br i1 %".294", label %"go", label %"again"
head.2:
  %".54" = phi  i64 [0, %"body.1"], [%".231", %"body.2"]
  %".55" = phi  <8 x float> [%".33", %"body.1"], [%".213", %"body.2"]
  %".56" = phi  <8 x float> [%".34", %"body.1"], [%".214", %"body.2"]
  %".57" = phi  <8 x float> [%".35", %"body.1"], [%".221", %"body.2"]
  %".58" = phi  <8 x float> [%".36", %"body.1"], [%".222", %"body.2"]
  %".59" = phi  <8 x float> [%".37", %"body.1"], [%".229", %"body.2"]
  %".60" = phi  <8 x float> [%".38", %"body.1"], [%".230", %"body.2"]
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
  %".72" = icmp ult i64 %".10", 8
  %".73" = select  i1 %".72", i64 %".10", i64 8
  %".74" = trunc i64 %".10" to i32
  %".75" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".74", i32 0
  %".76" = shufflevector <8 x i32> %".75", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".77" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".76"
  %".78" = add i64 %".66", 32
  %".79" = inttoptr i64 %".78" to <8 x float>*
  %".80" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".79", i32 4, <8 x i1> %".77", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".81" = add i64 %".19", %".68"
  %".82" = add i64 %".81", 0
  %".83" = inttoptr i64 %".82" to float*
  %".84" = load float, float* %".83"
  %".85" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".84", i32 0
  %".86" = shufflevector <8 x float> %".85", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".87" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".86", <8 x float> %".71", <8 x float> %".55")
  %".88" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".86", <8 x float> %".80", <8 x float> %".56")
  %".89" = add i64 %".21", %".68"
  %".90" = add i64 %".89", 4
  %".91" = inttoptr i64 %".90" to float*
  %".92" = load float, float* %".91"
  %".93" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".92", i32 0
  %".94" = shufflevector <8 x float> %".93", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".95" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".94", <8 x float> %".71", <8 x float> %".57")
  %".96" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".94", <8 x float> %".80", <8 x float> %".58")
  %".97" = add i64 %".23", %".68"
  %".98" = add i64 %".97", 8
  %".99" = inttoptr i64 %".98" to float*
  %".100" = load float, float* %".99"
  %".101" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".100", i32 0
  %".102" = shufflevector <8 x float> %".101", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".103" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".102", <8 x float> %".71", <8 x float> %".59")
  %".104" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".102", <8 x float> %".80", <8 x float> %".60")
  %".105" = mul i64 %".54", 4
  %".106" = add i64 %".105", 1
  %".107" = mul i64 %".106", %".16"
  %".108" = add i64 %".50", %".107"
  %".109" = mul i64 %".106", %".15"
  %".110" = add i64 %".45", %".109"
  %".111" = add i64 %".108", 0
  %".112" = inttoptr i64 %".111" to <8 x float>*
  %".113" = load <8 x float>, <8 x float>* %".112", align 4
  %".114" = icmp ult i64 %".10", 8
  %".115" = select  i1 %".114", i64 %".10", i64 8
  %".116" = trunc i64 %".10" to i32
  %".117" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".116", i32 0
  %".118" = shufflevector <8 x i32> %".117", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".119" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".118"
  %".120" = add i64 %".108", 32
  %".121" = inttoptr i64 %".120" to <8 x float>*
  %".122" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".121", i32 4, <8 x i1> %".119", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".123" = add i64 %".19", %".110"
  %".124" = add i64 %".123", 0
  %".125" = inttoptr i64 %".124" to float*
  %".126" = load float, float* %".125"
  %".127" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".126", i32 0
  %".128" = shufflevector <8 x float> %".127", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".129" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".113", <8 x float> %".87")
  %".130" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".122", <8 x float> %".88")
  %".131" = add i64 %".21", %".110"
  %".132" = add i64 %".131", 4
  %".133" = inttoptr i64 %".132" to float*
  %".134" = load float, float* %".133"
  %".135" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".134", i32 0
  %".136" = shufflevector <8 x float> %".135", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".137" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".136", <8 x float> %".113", <8 x float> %".95")
  %".138" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".136", <8 x float> %".122", <8 x float> %".96")
  %".139" = add i64 %".23", %".110"
  %".140" = add i64 %".139", 8
  %".141" = inttoptr i64 %".140" to float*
  %".142" = load float, float* %".141"
  %".143" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".142", i32 0
  %".144" = shufflevector <8 x float> %".143", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".145" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".144", <8 x float> %".113", <8 x float> %".103")
  %".146" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".144", <8 x float> %".122", <8 x float> %".104")
  %".147" = mul i64 %".54", 4
  %".148" = add i64 %".147", 2
  %".149" = mul i64 %".148", %".16"
  %".150" = add i64 %".50", %".149"
  %".151" = mul i64 %".148", %".15"
  %".152" = add i64 %".45", %".151"
  %".153" = add i64 %".150", 0
  %".154" = inttoptr i64 %".153" to <8 x float>*
  %".155" = load <8 x float>, <8 x float>* %".154", align 4
  %".156" = icmp ult i64 %".10", 8
  %".157" = select  i1 %".156", i64 %".10", i64 8
  %".158" = trunc i64 %".10" to i32
  %".159" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".158", i32 0
  %".160" = shufflevector <8 x i32> %".159", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".161" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".160"
  %".162" = add i64 %".150", 32
  %".163" = inttoptr i64 %".162" to <8 x float>*
  %".164" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".163", i32 4, <8 x i1> %".161", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".165" = add i64 %".19", %".152"
  %".166" = add i64 %".165", 0
  %".167" = inttoptr i64 %".166" to float*
  %".168" = load float, float* %".167"
  %".169" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".168", i32 0
  %".170" = shufflevector <8 x float> %".169", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".171" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".170", <8 x float> %".155", <8 x float> %".129")
  %".172" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".170", <8 x float> %".164", <8 x float> %".130")
  %".173" = add i64 %".21", %".152"
  %".174" = add i64 %".173", 4
  %".175" = inttoptr i64 %".174" to float*
  %".176" = load float, float* %".175"
  %".177" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".176", i32 0
  %".178" = shufflevector <8 x float> %".177", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".179" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".178", <8 x float> %".155", <8 x float> %".137")
  %".180" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".178", <8 x float> %".164", <8 x float> %".138")
  %".181" = add i64 %".23", %".152"
  %".182" = add i64 %".181", 8
  %".183" = inttoptr i64 %".182" to float*
  %".184" = load float, float* %".183"
  %".185" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".184", i32 0
  %".186" = shufflevector <8 x float> %".185", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".187" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".186", <8 x float> %".155", <8 x float> %".145")
  %".188" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".186", <8 x float> %".164", <8 x float> %".146")
  %".189" = mul i64 %".54", 4
  %".190" = add i64 %".189", 3
  %".191" = mul i64 %".190", %".16"
  %".192" = add i64 %".50", %".191"
  %".193" = mul i64 %".190", %".15"
  %".194" = add i64 %".45", %".193"
  %".195" = add i64 %".192", 0
  %".196" = inttoptr i64 %".195" to <8 x float>*
  %".197" = load <8 x float>, <8 x float>* %".196", align 4
  %".198" = icmp ult i64 %".10", 8
  %".199" = select  i1 %".198", i64 %".10", i64 8
  %".200" = trunc i64 %".10" to i32
  %".201" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".200", i32 0
  %".202" = shufflevector <8 x i32> %".201", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".203" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".202"
  %".204" = add i64 %".192", 32
  %".205" = inttoptr i64 %".204" to <8 x float>*
  %".206" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".205", i32 4, <8 x i1> %".203", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".207" = add i64 %".19", %".194"
  %".208" = add i64 %".207", 0
  %".209" = inttoptr i64 %".208" to float*
  %".210" = load float, float* %".209"
  %".211" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".210", i32 0
  %".212" = shufflevector <8 x float> %".211", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".213" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".197", <8 x float> %".171")
  %".214" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".206", <8 x float> %".172")
  %".215" = add i64 %".21", %".194"
  %".216" = add i64 %".215", 4
  %".217" = inttoptr i64 %".216" to float*
  %".218" = load float, float* %".217"
  %".219" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".218", i32 0
  %".220" = shufflevector <8 x float> %".219", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".221" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".220", <8 x float> %".197", <8 x float> %".179")
  %".222" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".220", <8 x float> %".206", <8 x float> %".180")
  %".223" = add i64 %".23", %".194"
  %".224" = add i64 %".223", 8
  %".225" = inttoptr i64 %".224" to float*
  %".226" = load float, float* %".225"
  %".227" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".226", i32 0
  %".228" = shufflevector <8 x float> %".227", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".229" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".228", <8 x float> %".197", <8 x float> %".187")
  %".230" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".228", <8 x float> %".206", <8 x float> %".188")
  %".231" = add i64 %".54", 1
  br label %"head.2"
end.2:
  %".233" = mul i64 %".51", 4
  %".234" = add i64 %".233", 0
  %".235" = mul i64 %".234", %".16"
  %".236" = add i64 %".50", %".235"
  %".237" = mul i64 %".234", %".15"
  %".238" = add i64 %".45", %".237"
  br label %"head.3"
head.3:
  %".240" = phi  i64 [0, %"end.2"], [%".290", %"body.3"]
  %".241" = phi  <8 x float> [%".55", %"end.2"], [%".272", %"body.3"]
  %".242" = phi  <8 x float> [%".56", %"end.2"], [%".273", %"body.3"]
  %".243" = phi  <8 x float> [%".57", %"end.2"], [%".280", %"body.3"]
  %".244" = phi  <8 x float> [%".58", %"end.2"], [%".281", %"body.3"]
  %".245" = phi  <8 x float> [%".59", %"end.2"], [%".288", %"body.3"]
  %".246" = phi  <8 x float> [%".60", %"end.2"], [%".289", %"body.3"]
  %".247" = icmp slt i64 %".240", %".52"
  br i1 %".247", label %"body.3", label %"end.3"
body.3:
  %".249" = add i64 %".240", 0
  %".250" = mul i64 %".249", %".16"
  %".251" = add i64 %".236", %".250"
  %".252" = mul i64 %".249", %".15"
  %".253" = add i64 %".238", %".252"
  %".254" = add i64 %".251", 0
  %".255" = inttoptr i64 %".254" to <8 x float>*
  %".256" = load <8 x float>, <8 x float>* %".255", align 4
  %".257" = icmp ult i64 %".10", 8
  %".258" = select  i1 %".257", i64 %".10", i64 8
  %".259" = trunc i64 %".10" to i32
  %".260" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".259", i32 0
  %".261" = shufflevector <8 x i32> %".260", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".262" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".261"
  %".263" = add i64 %".251", 32
  %".264" = inttoptr i64 %".263" to <8 x float>*
  %".265" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".264", i32 4, <8 x i1> %".262", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".266" = add i64 %".19", %".253"
  %".267" = add i64 %".266", 0
  %".268" = inttoptr i64 %".267" to float*
  %".269" = load float, float* %".268"
  %".270" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".269", i32 0
  %".271" = shufflevector <8 x float> %".270", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".272" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".271", <8 x float> %".256", <8 x float> %".241")
  %".273" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".271", <8 x float> %".265", <8 x float> %".242")
  %".274" = add i64 %".21", %".253"
  %".275" = add i64 %".274", 4
  %".276" = inttoptr i64 %".275" to float*
  %".277" = load float, float* %".276"
  %".278" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".277", i32 0
  %".279" = shufflevector <8 x float> %".278", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".280" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".279", <8 x float> %".256", <8 x float> %".243")
  %".281" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".279", <8 x float> %".265", <8 x float> %".244")
  %".282" = add i64 %".23", %".253"
  %".283" = add i64 %".282", 8
  %".284" = inttoptr i64 %".283" to float*
  %".285" = load float, float* %".284"
  %".286" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".285", i32 0
  %".287" = shufflevector <8 x float> %".286", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".288" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".287", <8 x float> %".256", <8 x float> %".245")
  %".289" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".287", <8 x float> %".265", <8 x float> %".246")
  %".290" = add i64 %".240", 1
  br label %"head.3"
end.3:
  %".292" = add i64 %".32", 1
  br label %"head.1"
again:
  %".296" = inttoptr i64 %".3" to i64*
  %".297" = load i64, i64* %".296"
  %".298" = add i64 %".297", %".30"
  %".299" = add i64 %".298", 0
  %".300" = inttoptr i64 %".299" to <8 x float>*
  %".301" = load <8 x float>, <8 x float>* %".300", align 4
  %".302" = icmp ult i64 %".10", 8
  %".303" = select  i1 %".302", i64 %".10", i64 8
  %".304" = trunc i64 %".10" to i32
  %".305" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".304", i32 0
  %".306" = shufflevector <8 x i32> %".305", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".307" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".306"
  %".308" = add i64 %".298", 32
  %".309" = inttoptr i64 %".308" to <8 x float>*
  %".310" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".309", i32 4, <8 x i1> %".307", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".311" = add i64 %".3", 8
  %".312" = inttoptr i64 %".311" to i64*
  %".313" = load i64, i64* %".312"
  %".314" = add i64 %".313", %".30"
  %".315" = add i64 %".314", 0
  %".316" = inttoptr i64 %".315" to <8 x float>*
  %".317" = load <8 x float>, <8 x float>* %".316", align 4
  %".318" = icmp ult i64 %".10", 8
  %".319" = select  i1 %".318", i64 %".10", i64 8
  %".320" = trunc i64 %".10" to i32
  %".321" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".320", i32 0
  %".322" = shufflevector <8 x i32> %".321", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".323" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".322"
  %".324" = add i64 %".314", 32
  %".325" = inttoptr i64 %".324" to <8 x float>*
  %".326" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".325", i32 4, <8 x i1> %".323", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".327" = add i64 %".3", 16
  %".328" = inttoptr i64 %".327" to i64*
  %".329" = load i64, i64* %".328"
  %".330" = add i64 %".329", %".30"
  %".331" = add i64 %".330", 0
  %".332" = inttoptr i64 %".331" to <8 x float>*
  %".333" = load <8 x float>, <8 x float>* %".332", align 4
  %".334" = icmp ult i64 %".10", 8
  %".335" = select  i1 %".334", i64 %".10", i64 8
  %".336" = trunc i64 %".10" to i32
  %".337" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".336", i32 0
  %".338" = shufflevector <8 x i32> %".337", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".339" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".338"
  %".340" = add i64 %".330", 32
  %".341" = inttoptr i64 %".340" to <8 x float>*
  %".342" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".341", i32 4, <8 x i1> %".339", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".344" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".301", %"again"]
  %".345" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".310", %"again"]
  %".346" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".317", %"again"]
  %".347" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".326", %"again"]
  %".348" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".333", %"again"]
  %".349" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.1"], [%".342", %"again"]
  %".350" = fadd <8 x float> %".33", %".344"
  %".351" = fadd <8 x float> %".34", %".345"
  %".352" = fadd <8 x float> %".35", %".346"
  %".353" = fadd <8 x float> %".36", %".347"
  %".354" = fadd <8 x float> %".37", %".348"
  %".355" = fadd <8 x float> %".38", %".349"
  %".356" = icmp ne i64 %".9", 0
  br i1 %".356", label %"final", label %"partial"
partial:
  %".358" = inttoptr i64 %".3" to i64*
  %".359" = load i64, i64* %".358"
  %".360" = add i64 %".359", %".30"
  %".361" = add i64 %".360", 0
  %".362" = inttoptr i64 %".361" to <8 x float>*
  store <8 x float> %".350", <8 x float>* %".362", align 4
  %".364" = add i64 %".3", 8
  %".365" = inttoptr i64 %".364" to i64*
  %".366" = load i64, i64* %".365"
  %".367" = add i64 %".366", %".30"
  %".368" = add i64 %".367", 0
  %".369" = inttoptr i64 %".368" to <8 x float>*
  store <8 x float> %".352", <8 x float>* %".369", align 4
  %".371" = add i64 %".3", 16
  %".372" = inttoptr i64 %".371" to i64*
  %".373" = load i64, i64* %".372"
  %".374" = add i64 %".373", %".30"
  %".375" = add i64 %".374", 0
  %".376" = inttoptr i64 %".375" to <8 x float>*
  store <8 x float> %".354", <8 x float>* %".376", align 4
  %".378" = icmp ult i64 %".10", 8
  %".379" = select  i1 %".378", i64 %".10", i64 8
  %".380" = trunc i64 %".10" to i32
  %".381" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".380", i32 0
  %".382" = shufflevector <8 x i32> %".381", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".383" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".382"
  %".384" = inttoptr i64 %".3" to i64*
  %".385" = load i64, i64* %".384"
  %".386" = add i64 %".385", %".30"
  %".387" = add i64 %".386", 32
  %".388" = inttoptr i64 %".387" to <8 x float>*
  %".389" = add i64 %".3", 8
  %".390" = inttoptr i64 %".389" to i64*
  %".391" = load i64, i64* %".390"
  %".392" = add i64 %".391", %".30"
  %".393" = add i64 %".392", 32
  %".394" = inttoptr i64 %".393" to <8 x float>*
  %".395" = add i64 %".3", 16
  %".396" = inttoptr i64 %".395" to i64*
  %".397" = load i64, i64* %".396"
  %".398" = add i64 %".397", %".30"
  %".399" = add i64 %".398", 32
  %".400" = inttoptr i64 %".399" to <8 x float>*
  %".401" = and i64 %".379", 8
  %".402" = icmp ne i64 %".401", 0
  br i1 %".402", label %"partial.if", label %"partial.endif"
final:
  %".492" = inttoptr i64 %".3" to i64*
  %".493" = load i64, i64* %".492"
  %".494" = add i64 %".493", %".30"
  %".495" = add i64 %".494", 0
  %".496" = inttoptr i64 %".495" to <8 x float>*
  store <8 x float> %".350", <8 x float>* %".496", align 4
  %".498" = add i64 %".3", 8
  %".499" = inttoptr i64 %".498" to i64*
  %".500" = load i64, i64* %".499"
  %".501" = add i64 %".500", %".30"
  %".502" = add i64 %".501", 0
  %".503" = inttoptr i64 %".502" to <8 x float>*
  store <8 x float> %".352", <8 x float>* %".503", align 4
  %".505" = add i64 %".3", 16
  %".506" = inttoptr i64 %".505" to i64*
  %".507" = load i64, i64* %".506"
  %".508" = add i64 %".507", %".30"
  %".509" = add i64 %".508", 0
  %".510" = inttoptr i64 %".509" to <8 x float>*
  store <8 x float> %".354", <8 x float>* %".510", align 4
  %".512" = icmp ult i64 %".10", 8
  %".513" = select  i1 %".512", i64 %".10", i64 8
  %".514" = trunc i64 %".10" to i32
  %".515" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".514", i32 0
  %".516" = shufflevector <8 x i32> %".515", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".517" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".516"
  %".518" = inttoptr i64 %".3" to i64*
  %".519" = load i64, i64* %".518"
  %".520" = add i64 %".519", %".30"
  %".521" = add i64 %".520", 32
  %".522" = inttoptr i64 %".521" to <8 x float>*
  %".523" = add i64 %".3", 8
  %".524" = inttoptr i64 %".523" to i64*
  %".525" = load i64, i64* %".524"
  %".526" = add i64 %".525", %".30"
  %".527" = add i64 %".526", 32
  %".528" = inttoptr i64 %".527" to <8 x float>*
  %".529" = add i64 %".3", 16
  %".530" = inttoptr i64 %".529" to i64*
  %".531" = load i64, i64* %".530"
  %".532" = add i64 %".531", %".30"
  %".533" = add i64 %".532", 32
  %".534" = inttoptr i64 %".533" to <8 x float>*
  %".535" = and i64 %".513", 8
  %".536" = icmp ne i64 %".535", 0
  br i1 %".536", label %"final.if", label %"final.endif"
end.4:
  %".626" = add i64 %".26", 1
  br label %"head"
partial.if:
  %".404" = add i64 %".387", 0
  %".405" = inttoptr i64 %".404" to <8 x float>*
  store <8 x float> %".351", <8 x float>* %".405", align 4
  %".407" = add i64 %".393", 0
  %".408" = inttoptr i64 %".407" to <8 x float>*
  store <8 x float> %".353", <8 x float>* %".408", align 4
  %".410" = add i64 %".399", 0
  %".411" = inttoptr i64 %".410" to <8 x float>*
  store <8 x float> %".355", <8 x float>* %".411", align 4
  br label %"partial.endif"
partial.endif:
  %".414" = select  i1 %".402", i64 32, i64 0
  %".415" = add i64 0, %".414"
  %".416" = select  i1 %".402", <8 x float> %".351", <8 x float> %".351"
  %".417" = select  i1 %".402", <8 x float> %".353", <8 x float> %".353"
  %".418" = select  i1 %".402", <8 x float> %".355", <8 x float> %".355"
  %".419" = and i64 %".379", 4
  %".420" = icmp ne i64 %".419", 0
  %".421" = shufflevector <8 x float> %".416", <8 x float> %".416", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".422" = shufflevector <8 x float> %".417", <8 x float> %".417", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".423" = shufflevector <8 x float> %".418", <8 x float> %".418", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".424" = shufflevector <8 x float> %".416", <8 x float> %".416", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".425" = shufflevector <8 x float> %".417", <8 x float> %".417", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".426" = shufflevector <8 x float> %".418", <8 x float> %".418", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".420", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".428" = add i64 %".387", %".415"
  %".429" = inttoptr i64 %".428" to <4 x float>*
  store <4 x float> %".421", <4 x float>* %".429", align 4
  %".431" = add i64 %".393", %".415"
  %".432" = inttoptr i64 %".431" to <4 x float>*
  store <4 x float> %".422", <4 x float>* %".432", align 4
  %".434" = add i64 %".399", %".415"
  %".435" = inttoptr i64 %".434" to <4 x float>*
  store <4 x float> %".423", <4 x float>* %".435", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".438" = select  i1 %".420", i64 16, i64 0
  %".439" = add i64 %".415", %".438"
  %".440" = select  i1 %".420", <4 x float> %".424", <4 x float> %".421"
  %".441" = select  i1 %".420", <4 x float> %".425", <4 x float> %".422"
  %".442" = select  i1 %".420", <4 x float> %".426", <4 x float> %".423"
  %".443" = and i64 %".379", 2
  %".444" = icmp ne i64 %".443", 0
  %".445" = shufflevector <4 x float> %".440", <4 x float> %".440", <2 x i32> <i32 0, i32 1>
  %".446" = shufflevector <4 x float> %".441", <4 x float> %".441", <2 x i32> <i32 0, i32 1>
  %".447" = shufflevector <4 x float> %".442", <4 x float> %".442", <2 x i32> <i32 0, i32 1>
  %".448" = shufflevector <4 x float> %".440", <4 x float> %".440", <2 x i32> <i32 2, i32 3>
  %".449" = shufflevector <4 x float> %".441", <4 x float> %".441", <2 x i32> <i32 2, i32 3>
  %".450" = shufflevector <4 x float> %".442", <4 x float> %".442", <2 x i32> <i32 2, i32 3>
  br i1 %".444", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".452" = add i64 %".387", %".439"
  %".453" = inttoptr i64 %".452" to <2 x float>*
  store <2 x float> %".445", <2 x float>* %".453", align 4
  %".455" = add i64 %".393", %".439"
  %".456" = inttoptr i64 %".455" to <2 x float>*
  store <2 x float> %".446", <2 x float>* %".456", align 4
  %".458" = add i64 %".399", %".439"
  %".459" = inttoptr i64 %".458" to <2 x float>*
  store <2 x float> %".447", <2 x float>* %".459", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".462" = select  i1 %".444", i64 8, i64 0
  %".463" = add i64 %".439", %".462"
  %".464" = select  i1 %".444", <2 x float> %".448", <2 x float> %".445"
  %".465" = select  i1 %".444", <2 x float> %".449", <2 x float> %".446"
  %".466" = select  i1 %".444", <2 x float> %".450", <2 x float> %".447"
  %".467" = and i64 %".379", 1
  %".468" = icmp ne i64 %".467", 0
  %".469" = shufflevector <2 x float> %".464", <2 x float> %".464", <1 x i32> <i32 0>
  %".470" = shufflevector <2 x float> %".465", <2 x float> %".465", <1 x i32> <i32 0>
  %".471" = shufflevector <2 x float> %".466", <2 x float> %".466", <1 x i32> <i32 0>
  %".472" = shufflevector <2 x float> %".464", <2 x float> %".464", <1 x i32> <i32 1>
  %".473" = shufflevector <2 x float> %".465", <2 x float> %".465", <1 x i32> <i32 1>
  %".474" = shufflevector <2 x float> %".466", <2 x float> %".466", <1 x i32> <i32 1>
  br i1 %".468", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".476" = add i64 %".387", %".463"
  %".477" = inttoptr i64 %".476" to <1 x float>*
  store <1 x float> %".469", <1 x float>* %".477", align 4
  %".479" = add i64 %".393", %".463"
  %".480" = inttoptr i64 %".479" to <1 x float>*
  store <1 x float> %".470", <1 x float>* %".480", align 4
  %".482" = add i64 %".399", %".463"
  %".483" = inttoptr i64 %".482" to <1 x float>*
  store <1 x float> %".471", <1 x float>* %".483", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".486" = select  i1 %".468", i64 4, i64 0
  %".487" = add i64 %".463", %".486"
  %".488" = select  i1 %".468", <1 x float> %".472", <1 x float> %".469"
  %".489" = select  i1 %".468", <1 x float> %".473", <1 x float> %".470"
  %".490" = select  i1 %".468", <1 x float> %".474", <1 x float> %".471"
  br label %"end.4"
final.if:
  %".538" = add i64 %".521", 0
  %".539" = inttoptr i64 %".538" to <8 x float>*
  store <8 x float> %".351", <8 x float>* %".539", align 4
  %".541" = add i64 %".527", 0
  %".542" = inttoptr i64 %".541" to <8 x float>*
  store <8 x float> %".353", <8 x float>* %".542", align 4
  %".544" = add i64 %".533", 0
  %".545" = inttoptr i64 %".544" to <8 x float>*
  store <8 x float> %".355", <8 x float>* %".545", align 4
  br label %"final.endif"
final.endif:
  %".548" = select  i1 %".536", i64 32, i64 0
  %".549" = add i64 0, %".548"
  %".550" = select  i1 %".536", <8 x float> %".351", <8 x float> %".351"
  %".551" = select  i1 %".536", <8 x float> %".353", <8 x float> %".353"
  %".552" = select  i1 %".536", <8 x float> %".355", <8 x float> %".355"
  %".553" = and i64 %".513", 4
  %".554" = icmp ne i64 %".553", 0
  %".555" = shufflevector <8 x float> %".550", <8 x float> %".550", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".556" = shufflevector <8 x float> %".551", <8 x float> %".551", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".557" = shufflevector <8 x float> %".552", <8 x float> %".552", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".558" = shufflevector <8 x float> %".550", <8 x float> %".550", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".559" = shufflevector <8 x float> %".551", <8 x float> %".551", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".560" = shufflevector <8 x float> %".552", <8 x float> %".552", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".554", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".562" = add i64 %".521", %".549"
  %".563" = inttoptr i64 %".562" to <4 x float>*
  store <4 x float> %".555", <4 x float>* %".563", align 4
  %".565" = add i64 %".527", %".549"
  %".566" = inttoptr i64 %".565" to <4 x float>*
  store <4 x float> %".556", <4 x float>* %".566", align 4
  %".568" = add i64 %".533", %".549"
  %".569" = inttoptr i64 %".568" to <4 x float>*
  store <4 x float> %".557", <4 x float>* %".569", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".572" = select  i1 %".554", i64 16, i64 0
  %".573" = add i64 %".549", %".572"
  %".574" = select  i1 %".554", <4 x float> %".558", <4 x float> %".555"
  %".575" = select  i1 %".554", <4 x float> %".559", <4 x float> %".556"
  %".576" = select  i1 %".554", <4 x float> %".560", <4 x float> %".557"
  %".577" = and i64 %".513", 2
  %".578" = icmp ne i64 %".577", 0
  %".579" = shufflevector <4 x float> %".574", <4 x float> %".574", <2 x i32> <i32 0, i32 1>
  %".580" = shufflevector <4 x float> %".575", <4 x float> %".575", <2 x i32> <i32 0, i32 1>
  %".581" = shufflevector <4 x float> %".576", <4 x float> %".576", <2 x i32> <i32 0, i32 1>
  %".582" = shufflevector <4 x float> %".574", <4 x float> %".574", <2 x i32> <i32 2, i32 3>
  %".583" = shufflevector <4 x float> %".575", <4 x float> %".575", <2 x i32> <i32 2, i32 3>
  %".584" = shufflevector <4 x float> %".576", <4 x float> %".576", <2 x i32> <i32 2, i32 3>
  br i1 %".578", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".586" = add i64 %".521", %".573"
  %".587" = inttoptr i64 %".586" to <2 x float>*
  store <2 x float> %".579", <2 x float>* %".587", align 4
  %".589" = add i64 %".527", %".573"
  %".590" = inttoptr i64 %".589" to <2 x float>*
  store <2 x float> %".580", <2 x float>* %".590", align 4
  %".592" = add i64 %".533", %".573"
  %".593" = inttoptr i64 %".592" to <2 x float>*
  store <2 x float> %".581", <2 x float>* %".593", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".596" = select  i1 %".578", i64 8, i64 0
  %".597" = add i64 %".573", %".596"
  %".598" = select  i1 %".578", <2 x float> %".582", <2 x float> %".579"
  %".599" = select  i1 %".578", <2 x float> %".583", <2 x float> %".580"
  %".600" = select  i1 %".578", <2 x float> %".584", <2 x float> %".581"
  %".601" = and i64 %".513", 1
  %".602" = icmp ne i64 %".601", 0
  %".603" = shufflevector <2 x float> %".598", <2 x float> %".598", <1 x i32> <i32 0>
  %".604" = shufflevector <2 x float> %".599", <2 x float> %".599", <1 x i32> <i32 0>
  %".605" = shufflevector <2 x float> %".600", <2 x float> %".600", <1 x i32> <i32 0>
  %".606" = shufflevector <2 x float> %".598", <2 x float> %".598", <1 x i32> <i32 1>
  %".607" = shufflevector <2 x float> %".599", <2 x float> %".599", <1 x i32> <i32 1>
  %".608" = shufflevector <2 x float> %".600", <2 x float> %".600", <1 x i32> <i32 1>
  br i1 %".602", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".610" = add i64 %".521", %".597"
  %".611" = inttoptr i64 %".610" to <1 x float>*
  store <1 x float> %".603", <1 x float>* %".611", align 4
  %".613" = add i64 %".527", %".597"
  %".614" = inttoptr i64 %".613" to <1 x float>*
  store <1 x float> %".604", <1 x float>* %".614", align 4
  %".616" = add i64 %".533", %".597"
  %".617" = inttoptr i64 %".616" to <1 x float>*
  store <1 x float> %".605", <1 x float>* %".617", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".620" = select  i1 %".602", i64 4, i64 0
  %".621" = add i64 %".597", %".620"
  %".622" = select  i1 %".602", <1 x float> %".606", <1 x float> %".603"
  %".623" = select  i1 %".602", <1 x float> %".607", <1 x float> %".604"
  %".624" = select  i1 %".602", <1 x float> %".608", <1 x float> %".605"
  br label %"end.4"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
