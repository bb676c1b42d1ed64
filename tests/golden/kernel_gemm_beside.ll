; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13") nounwind
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = inttoptr i64 %".1" to i64*
  %".18" = load i64, i64* %".17"
  %".19" = inttoptr i64 %".1" to i64*
  %".20" = load i64, i64* %".19"
  %".21" = mul i64 %".7", %".13"
  %".22" = add i64 %".11", 8
  %".23" = inttoptr i64 %".22" to i64*
  %".24" = load i64, i64* %".23"
  %".25" = inttoptr i64 %".11" to i64*
  %".26" = load i64, i64* %".25"
  br label %"head"
head:
  %".28" = phi  i64 [0, %"entry"], [%".658", %"end.1"]
  %".29" = icmp slt i64 %".28", %".26"
  br i1 %".29", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".32" = phi  i64 [0, %"body"], [%".656", %"end.5"]
  %".33" = icmp slt i64 %".32", %".24"
  br i1 %".33", label %"body.1", label %"end.1"
body.1:
  %".35" = add i64 %".11", 16
  %".36" = inttoptr i64 %".35" to i64*
  %".37" = load i64, i64* %".36"
  %".38" = mul i64 %".28", %".24"
  %".39" = add i64 %".37", %".38"
  %".40" = add i64 %".39", %".32"
  %".41" = add i64 %".11", 24
  %".42" = inttoptr i64 %".41" to i64*
  %".43" = load i64, i64* %".42"
  %".44" = add i64 %".11", 32
  %".45" = inttoptr i64 %".44" to i64*
  %".46" = load i64, i64* %".45"
  %".47" = mul i64 %".28", %".43"
  %".48" = mul i64 %".32", %".46"
  %".49" = add i64 %".47", %".48"
  %".50" = add i64 %".11", 40
  %".51" = inttoptr i64 %".50" to i64*
  %".52" = load i64, i64* %".51"
  %".53" = add i64 %".11", 48
  %".54" = inttoptr i64 %".53" to i64*
  %".55" = load i64, i64* %".54"
  %".56" = mul i64 %".28", %".52"
  %".57" = mul i64 %".32", %".55"
  %".58" = add i64 %".56", %".57"
  br label %"head.2"
end.1:
  %".658" = add i64 %".28", 1
  br label %"head"
head.2:
  %".60" = phi  i64 [0, %"body.1"], [%".322", %"end.4"]
  %".61" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".271", %"end.4"]
  %".62" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".272", %"end.4"]
  %".63" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".273", %"end.4"]
  %".64" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".274", %"end.4"]
  %".65" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".275", %"end.4"]
  %".66" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".276", %"end.4"]
  %".67" = icmp slt i64 %".60", %".6"
  br i1 %".67", label %"body.2", label %"end.2"
body.2:
  %".69" = mul i64 %".40", %".6"
  %".70" = add i64 %".69", %".60"
  %".71" = mul i64 %".60", 16
  %".72" = add i64 %".5", %".71"
  %".73" = inttoptr i64 %".72" to i64*
  %".74" = load i64, i64* %".73"
  %".75" = add i64 %".74", %".49"
  %".76" = add i64 %".72", 8
  %".77" = inttoptr i64 %".76" to i64*
  %".78" = load i64, i64* %".77"
  %".79" = mul i64 %".78", %".13"
  %".80" = add i64 %".2", %".79"
  %".81" = sdiv i64 %".7", 4
  %".82" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".324" = icmp ne i64 %".8", 0
  br i1 %".324", label %"go", label %"again"
head.3:
  %".84" = phi  i64 [0, %"body.2"], [%".261", %"body.3"]
  %".85" = phi  <8 x float> [%".61", %"body.2"], [%".243", %"body.3"]
  %".86" = phi  <8 x float> [%".62", %"body.2"], [%".244", %"body.3"]
  %".87" = phi  <8 x float> [%".63", %"body.2"], [%".251", %"body.3"]
  %".88" = phi  <8 x float> [%".64", %"body.2"], [%".252", %"body.3"]
  %".89" = phi  <8 x float> [%".65", %"body.2"], [%".259", %"body.3"]
  %".90" = phi  <8 x float> [%".66", %"body.2"], [%".260", %"body.3"]
  %".91" = icmp slt i64 %".84", %".81"
  br i1 %".91", label %"body.3", label %"end.3"
body.3:
  %".93" = mul i64 %".84", 4
  %".94" = add i64 %".93", 0
  %".95" = mul i64 %".94", %".13"
  %".96" = add i64 %".80", %".95"
  %".97" = mul i64 %".94", %".12"
  %".98" = add i64 %".75", %".97"
  %".99" = add i64 %".96", 0
  %".100" = inttoptr i64 %".99" to <8 x float>*
  %".101" = load <8 x float>, <8 x float>* %".100", align 4
  %".102" = icmp ult i64 %".10", 8
  %".103" = select  i1 %".102", i64 %".10", i64 8
  %".104" = trunc i64 %".10" to i32
  %".105" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".104", i32 0
  %".106" = shufflevector <8 x i32> %".105", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".107" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".106"
  %".108" = add i64 %".96", 32
  %".109" = inttoptr i64 %".108" to <8 x float>*
  %".110" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".109", i32 4, <8 x i1> %".107", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".111" = add i64 %".16", %".98"
  %".112" = add i64 %".111", 0
  %".113" = inttoptr i64 %".112" to float*
  %".114" = load float, float* %".113"
  %".115" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".114", i32 0
  %".116" = shufflevector <8 x float> %".115", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".117" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".101", <8 x float> %".85")
  %".118" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".110", <8 x float> %".86")
  %".119" = add i64 %".18", %".98"
  %".120" = add i64 %".119", 4
  %".121" = inttoptr i64 %".120" to float*
  %".122" = load float, float* %".121"
  %".123" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".122", i32 0
  %".124" = shufflevector <8 x float> %".123", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".125" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".101", <8 x float> %".87")
  %".126" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".124", <8 x float> %".110", <8 x float> %".88")
  %".127" = add i64 %".20", %".98"
  %".128" = add i64 %".127", 8
  %".129" = inttoptr i64 %".128" to float*
  %".130" = load float, float* %".129"
  %".131" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".130", i32 0
  %".132" = shufflevector <8 x float> %".131", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".133" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".132", <8 x float> %".101", <8 x float> %".89")
  %".134" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".132", <8 x float> %".110", <8 x float> %".90")
  %".135" = mul i64 %".84", 4
  %".136" = add i64 %".135", 1
  %".137" = mul i64 %".136", %".13"
  %".138" = add i64 %".80", %".137"
  %".139" = mul i64 %".136", %".12"
  %".140" = add i64 %".75", %".139"
  %".141" = add i64 %".138", 0
  %".142" = inttoptr i64 %".141" to <8 x float>*
  %".143" = load <8 x float>, <8 x float>* %".142", align 4
  %".144" = icmp ult i64 %".10", 8
  %".145" = select  i1 %".144", i64 %".10", i64 8
  %".146" = trunc i64 %".10" to i32
  %".147" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".146", i32 0
  %".148" = shufflevector <8 x i32> %".147", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".149" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".148"
  %".150" = add i64 %".138", 32
  %".151" = inttoptr i64 %".150" to <8 x float>*
  %".152" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".151", i32 4, <8 x i1> %".149", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".153" = add i64 %".16", %".140"
  %".154" = add i64 %".153", 0
  %".155" = inttoptr i64 %".154" to float*
  %".156" = load float, float* %".155"
  %".157" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".156", i32 0
  %".158" = shufflevector <8 x float> %".157", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".159" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".143", <8 x float> %".117")
  %".160" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".152", <8 x float> %".118")
  %".161" = add i64 %".18", %".140"
  %".162" = add i64 %".161", 4
  %".163" = inttoptr i64 %".162" to float*
  %".164" = load float, float* %".163"
  %".165" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".164", i32 0
  %".166" = shufflevector <8 x float> %".165", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".167" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".143", <8 x float> %".125")
  %".168" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".152", <8 x float> %".126")
  %".169" = add i64 %".20", %".140"
  %".170" = add i64 %".169", 8
  %".171" = inttoptr i64 %".170" to float*
  %".172" = load float, float* %".171"
  %".173" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".172", i32 0
  %".174" = shufflevector <8 x float> %".173", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".175" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".174", <8 x float> %".143", <8 x float> %".133")
  %".176" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".174", <8 x float> %".152", <8 x float> %".134")
  %".177" = mul i64 %".84", 4
  %".178" = add i64 %".177", 2
  %".179" = mul i64 %".178", %".13"
  %".180" = add i64 %".80", %".179"
  %".181" = mul i64 %".178", %".12"
  %".182" = add i64 %".75", %".181"
  %".183" = add i64 %".180", 0
  %".184" = inttoptr i64 %".183" to <8 x float>*
  %".185" = load <8 x float>, <8 x float>* %".184", align 4
  %".186" = icmp ult i64 %".10", 8
  %".187" = select  i1 %".186", i64 %".10", i64 8
  %".188" = trunc i64 %".10" to i32
  %".189" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".188", i32 0
  %".190" = shufflevector <8 x i32> %".189", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".191" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".190"
  %".192" = add i64 %".180", 32
  %".193" = inttoptr i64 %".192" to <8 x float>*
  %".194" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".193", i32 4, <8 x i1> %".191", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".195" = add i64 %".16", %".182"
  %".196" = add i64 %".195", 0
  %".197" = inttoptr i64 %".196" to float*
  %".198" = load float, float* %".197"
  %".199" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".198", i32 0
  %".200" = shufflevector <8 x float> %".199", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".201" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".200", <8 x float> %".185", <8 x float> %".159")
  %".202" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".200", <8 x float> %".194", <8 x float> %".160")
  %".203" = add i64 %".18", %".182"
  %".204" = add i64 %".203", 4
  %".205" = inttoptr i64 %".204" to float*
  %".206" = load float, float* %".205"
  %".207" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".206", i32 0
  %".208" = shufflevector <8 x float> %".207", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".209" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".208", <8 x float> %".185", <8 x float> %".167")
  %".210" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".208", <8 x float> %".194", <8 x float> %".168")
  %".211" = add i64 %".20", %".182"
  %".212" = add i64 %".211", 8
  %".213" = inttoptr i64 %".212" to float*
  %".214" = load float, float* %".213"
  %".215" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".214", i32 0
  %".216" = shufflevector <8 x float> %".215", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".217" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".216", <8 x float> %".185", <8 x float> %".175")
  %".218" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".216", <8 x float> %".194", <8 x float> %".176")
  %".219" = mul i64 %".84", 4
  %".220" = add i64 %".219", 3
  %".221" = mul i64 %".220", %".13"
  %".222" = add i64 %".80", %".221"
  %".223" = mul i64 %".220", %".12"
  %".224" = add i64 %".75", %".223"
  %".225" = add i64 %".222", 0
  %".226" = inttoptr i64 %".225" to <8 x float>*
  %".227" = load <8 x float>, <8 x float>* %".226", align 4
  %".228" = icmp ult i64 %".10", 8
  %".229" = select  i1 %".228", i64 %".10", i64 8
  %".230" = trunc i64 %".10" to i32
  %".231" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".230", i32 0
  %".232" = shufflevector <8 x i32> %".231", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".233" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".232"
  %".234" = add i64 %".222", 32
  %".235" = inttoptr i64 %".234" to <8 x float>*
  %".236" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".235", i32 4, <8 x i1> %".233", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".237" = add i64 %".16", %".224"
  %".238" = add i64 %".237", 0
  %".239" = inttoptr i64 %".238" to float*
  %".240" = load float, float* %".239"
  %".241" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".240", i32 0
  %".242" = shufflevector <8 x float> %".241", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".243" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".242", <8 x float> %".227", <8 x float> %".201")
  %".244" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".242", <8 x float> %".236", <8 x float> %".202")
  %".245" = add i64 %".18", %".224"
  %".246" = add i64 %".245", 4
  %".247" = inttoptr i64 %".246" to float*
  %".248" = load float, float* %".247"
  %".249" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".248", i32 0
  %".250" = shufflevector <8 x float> %".249", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".251" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".250", <8 x float> %".227", <8 x float> %".209")
  %".252" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".250", <8 x float> %".236", <8 x float> %".210")
  %".253" = add i64 %".20", %".224"
  %".254" = add i64 %".253", 8
  %".255" = inttoptr i64 %".254" to float*
  %".256" = load float, float* %".255"
  %".257" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".256", i32 0
  %".258" = shufflevector <8 x float> %".257", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".259" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".258", <8 x float> %".227", <8 x float> %".217")
  %".260" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".258", <8 x float> %".236", <8 x float> %".218")
  %".261" = add i64 %".84", 1
  br label %"head.3"
end.3:
  %".263" = mul i64 %".81", 4
  %".264" = add i64 %".263", 0
  %".265" = mul i64 %".264", %".13"
  %".266" = add i64 %".80", %".265"
  %".267" = mul i64 %".264", %".12"
  %".268" = add i64 %".75", %".267"
  br label %"head.4"
head.4:
  %".270" = phi  i64 [0, %"end.3"], [%".320", %"body.4"]
  %".271" = phi  <8 x float> [%".85", %"end.3"], [%".302", %"body.4"]
  %".272" = phi  <8 x float> [%".86", %"end.3"], [%".303", %"body.4"]
  %".273" = phi  <8 x float> [%".87", %"end.3"], [%".310", %"body.4"]
  %".274" = phi  <8 x float> [%".88", %"end.3"], [%".311", %"body.4"]
  %".275" = phi  <8 x float> [%".89", %"end.3"], [%".318", %"body.4"]
  %".276" = phi  <8 x float> [%".90", %"end.3"], [%".319", %"body.4"]
  %".277" = icmp slt i64 %".270", %".82"
  br i1 %".277", label %"body.4", label %"end.4"
body.4:
  %".279" = add i64 %".270", 0
  %".280" = mul i64 %".279", %".13"
  %".281" = add i64 %".266", %".280"
  %".282" = mul i64 %".279", %".12"
  %".283" = add i64 %".268", %".282"
  %".284" = add i64 %".281", 0
  %".285" = inttoptr i64 %".284" to <8 x float>*
  %".286" = load <8 x float>, <8 x float>* %".285", align 4
  %".287" = icmp ult i64 %".10", 8
  %".288" = select  i1 %".287", i64 %".10", i64 8
  %".289" = trunc i64 %".10" to i32
  %".290" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".289", i32 0
  %".291" = shufflevector <8 x i32> %".290", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".292" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".291"
  %".293" = add i64 %".281", 32
  %".294" = inttoptr i64 %".293" to <8 x float>*
  %".295" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".294", i32 4, <8 x i1> %".292", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".296" = add i64 %".16", %".283"
  %".297" = add i64 %".296", 0
  %".298" = inttoptr i64 %".297" to float*
  %".299" = load float, float* %".298"
  %".300" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".299", i32 0
  %".301" = shufflevector <8 x float> %".300", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".302" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".301", <8 x float> %".286", <8 x float> %".271")
  %".303" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".301", <8 x float> %".295", <8 x float> %".272")
  %".304" = add i64 %".18", %".283"
  %".305" = add i64 %".304", 4
  %".306" = inttoptr i64 %".305" to float*
  %".307" = load float, float* %".306"
  %".308" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".307", i32 0
  %".309" = shufflevector <8 x float> %".308", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".310" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".309", <8 x float> %".286", <8 x float> %".273")
  %".311" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".309", <8 x float> %".295", <8 x float> %".274")
  %".312" = add i64 %".20", %".283"
  %".313" = add i64 %".312", 8
  %".314" = inttoptr i64 %".313" to float*
  %".315" = load float, float* %".314"
  %".316" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".315", i32 0
  %".317" = shufflevector <8 x float> %".316", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".318" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".317", <8 x float> %".286", <8 x float> %".275")
  %".319" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".317", <8 x float> %".295", <8 x float> %".276")
  %".320" = add i64 %".270", 1
  br label %"head.4"
end.4:
  %".322" = add i64 %".60", 1
  br label %"head.2"
again:
  %".326" = inttoptr i64 %".3" to i64*
  %".327" = load i64, i64* %".326"
  %".328" = add i64 %".327", %".58"
  %".329" = add i64 %".328", 0
  %".330" = inttoptr i64 %".329" to <8 x float>*
  %".331" = load <8 x float>, <8 x float>* %".330", align 4
  %".332" = icmp ult i64 %".10", 8
  %".333" = select  i1 %".332", i64 %".10", i64 8
  %".334" = trunc i64 %".10" to i32
  %".335" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".334", i32 0
  %".336" = shufflevector <8 x i32> %".335", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".337" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".336"
  %".338" = add i64 %".328", 32
  %".339" = inttoptr i64 %".338" to <8 x float>*
  %".340" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".339", i32 4, <8 x i1> %".337", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".341" = add i64 %".3", 8
  %".342" = inttoptr i64 %".341" to i64*
  %".343" = load i64, i64* %".342"
  %".344" = add i64 %".343", %".58"
  %".345" = add i64 %".344", 0
  %".346" = inttoptr i64 %".345" to <8 x float>*
  %".347" = load <8 x float>, <8 x float>* %".346", align 4
  %".348" = icmp ult i64 %".10", 8
  %".349" = select  i1 %".348", i64 %".10", i64 8
  %".350" = trunc i64 %".10" to i32
  %".351" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".350", i32 0
  %".352" = shufflevector <8 x i32> %".351", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".353" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".352"
  %".354" = add i64 %".344", 32
  %".355" = inttoptr i64 %".354" to <8 x float>*
  %".356" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".355", i32 4, <8 x i1> %".353", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".357" = add i64 %".3", 16
  %".358" = inttoptr i64 %".357" to i64*
  %".359" = load i64, i64* %".358"
  %".360" = add i64 %".359", %".58"
  %".361" = add i64 %".360", 0
  %".362" = inttoptr i64 %".361" to <8 x float>*
  %".363" = load <8 x float>, <8 x float>* %".362", align 4
  %".364" = icmp ult i64 %".10", 8
  %".365" = select  i1 %".364", i64 %".10", i64 8
  %".366" = trunc i64 %".10" to i32
  %".367" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".366", i32 0
  %".368" = shufflevector <8 x i32> %".367", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".369" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".368"
  %".370" = add i64 %".360", 32
  %".371" = inttoptr i64 %".370" to <8 x float>*
  %".372" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".371", i32 4, <8 x i1> %".369", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".374" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".331", %"again"]
  %".375" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".340", %"again"]
  %".376" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".347", %"again"]
  %".377" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".356", %"again"]
  %".378" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".363", %"again"]
  %".379" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".372", %"again"]
  %".380" = fadd <8 x float> %".61", %".374"
  %".381" = fadd <8 x float> %".62", %".375"
  %".382" = fadd <8 x float> %".63", %".376"
  %".383" = fadd <8 x float> %".64", %".377"
  %".384" = fadd <8 x float> %".65", %".378"
  %".385" = fadd <8 x float> %".66", %".379"
  %".386" = icmp ne i64 %".9", 0
  br i1 %".386", label %"final", label %"partial"
partial:
  %".388" = inttoptr i64 %".3" to i64*
  %".389" = load i64, i64* %".388"
  %".390" = add i64 %".389", %".58"
  %".391" = add i64 %".390", 0
  %".392" = inttoptr i64 %".391" to <8 x float>*
  store <8 x float> %".380", <8 x float>* %".392", align 4
  %".394" = add i64 %".3", 8
  %".395" = inttoptr i64 %".394" to i64*
  %".396" = load i64, i64* %".395"
  %".397" = add i64 %".396", %".58"
  %".398" = add i64 %".397", 0
  %".399" = inttoptr i64 %".398" to <8 x float>*
  store <8 x float> %".382", <8 x float>* %".399", align 4
  %".401" = add i64 %".3", 16
  %".402" = inttoptr i64 %".401" to i64*
  %".403" = load i64, i64* %".402"
  %".404" = add i64 %".403", %".58"
  %".405" = add i64 %".404", 0
  %".406" = inttoptr i64 %".405" to <8 x float>*
  store <8 x float> %".384", <8 x float>* %".406", align 4
  %".408" = icmp ult i64 %".10", 8
  %".409" = select  i1 %".408", i64 %".10", i64 8
  %".410" = trunc i64 %".10" to i32
  %".411" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".410", i32 0
  %".412" = shufflevector <8 x i32> %".411", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".413" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".412"
  %".414" = inttoptr i64 %".3" to i64*
  %".415" = load i64, i64* %".414"
  %".416" = add i64 %".415", %".58"
  %".417" = add i64 %".416", 32
  %".418" = inttoptr i64 %".417" to <8 x float>*
  %".419" = add i64 %".3", 8
  %".420" = inttoptr i64 %".419" to i64*
  %".421" = load i64, i64* %".420"
  %".422" = add i64 %".421", %".58"
  %".423" = add i64 %".422", 32
  %".424" = inttoptr i64 %".423" to <8 x float>*
  %".425" = add i64 %".3", 16
  %".426" = inttoptr i64 %".425" to i64*
  %".427" = load i64, i64* %".426"
  %".428" = add i64 %".427", %".58"
  %".429" = add i64 %".428", 32
  %".430" = inttoptr i64 %".429" to <8 x float>*
  %".431" = and i64 %".409", 8
  %".432" = icmp ne i64 %".431", 0
  br i1 %".432", label %"partial.if", label %"partial.endif"
final:
  %".522" = inttoptr i64 %".3" to i64*
  %".523" = load i64, i64* %".522"
  %".524" = add i64 %".523", %".58"
  %".525" = add i64 %".524", 0
  %".526" = inttoptr i64 %".525" to <8 x float>*
  store <8 x float> %".380", <8 x float>* %".526", align 4
  %".528" = add i64 %".3", 8
  %".529" = inttoptr i64 %".528" to i64*
  %".530" = load i64, i64* %".529"
  %".531" = add i64 %".530", %".58"
  %".532" = add i64 %".531", 0
  %".533" = inttoptr i64 %".532" to <8 x float>*
  store <8 x float> %".382", <8 x float>* %".533", align 4
  %".535" = add i64 %".3", 16
  %".536" = inttoptr i64 %".535" to i64*
  %".537" = load i64, i64* %".536"
  %".538" = add i64 %".537", %".58"
  %".539" = add i64 %".538", 0
  %".540" = inttoptr i64 %".539" to <8 x float>*
  store <8 x float> %".384", <8 x float>* %".540", align 4
  %".542" = icmp ult i64 %".10", 8
  %".543" = select  i1 %".542", i64 %".10", i64 8
  %".544" = trunc i64 %".10" to i32
  %".545" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".544", i32 0
  %".546" = shufflevector <8 x i32> %".545", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".547" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".546"
  %".548" = inttoptr i64 %".3" to i64*
  %".549" = load i64, i64* %".548"
  %".550" = add i64 %".549", %".58"
  %".551" = add i64 %".550", 32
  %".552" = inttoptr i64 %".551" to <8 x float>*
  %".553" = add i64 %".3", 8
  %".554" = inttoptr i64 %".553" to i64*
  %".555" = load i64, i64* %".554"
  %".556" = add i64 %".555", %".58"
  %".557" = add i64 %".556", 32
  %".558" = inttoptr i64 %".557" to <8 x float>*
  %".559" = add i64 %".3", 16
  %".560" = inttoptr i64 %".559" to i64*
  %".561" = load i64, i64* %".560"
  %".562" = add i64 %".561", %".58"
  %".563" = add i64 %".562", 32
  %".564" = inttoptr i64 %".563" to <8 x float>*
  %".565" = and i64 %".543", 8
  %".566" = icmp ne i64 %".565", 0
  br i1 %".566", label %"final.if", label %"final.endif"
end.5:
  %".656" = add i64 %".32", 1
  br label %"head.1"
partial.if:
  %".434" = add i64 %".417", 0
  %".435" = inttoptr i64 %".434" to <8 x float>*
  store <8 x float> %".381", <8 x float>* %".435", align 4
  %".437" = add i64 %".423", 0
  %".438" = inttoptr i64 %".437" to <8 x float>*
  store <8 x float> %".383", <8 x float>* %".438", align 4
  %".440" = add i64 %".429", 0
  %".441" = inttoptr i64 %".440" to <8 x float>*
  store <8 x float> %".385", <8 x float>* %".441", align 4
  br label %"partial.endif"
partial.endif:
  %".444" = select  i1 %".432", i64 32, i64 0
  %".445" = add i64 0, %".444"
  %".446" = select  i1 %".432", <8 x float> %".381", <8 x float> %".381"
  %".447" = select  i1 %".432", <8 x float> %".383", <8 x float> %".383"
  %".448" = select  i1 %".432", <8 x float> %".385", <8 x float> %".385"
  %".449" = and i64 %".409", 4
  %".450" = icmp ne i64 %".449", 0
  %".451" = shufflevector <8 x float> %".446", <8 x float> %".446", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".452" = shufflevector <8 x float> %".447", <8 x float> %".447", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".453" = shufflevector <8 x float> %".448", <8 x float> %".448", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".454" = shufflevector <8 x float> %".446", <8 x float> %".446", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".455" = shufflevector <8 x float> %".447", <8 x float> %".447", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".456" = shufflevector <8 x float> %".448", <8 x float> %".448", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".450", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".458" = add i64 %".417", %".445"
  %".459" = inttoptr i64 %".458" to <4 x float>*
  store <4 x float> %".451", <4 x float>* %".459", align 4
  %".461" = add i64 %".423", %".445"
  %".462" = inttoptr i64 %".461" to <4 x float>*
  store <4 x float> %".452", <4 x float>* %".462", align 4
  %".464" = add i64 %".429", %".445"
  %".465" = inttoptr i64 %".464" to <4 x float>*
  store <4 x float> %".453", <4 x float>* %".465", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".468" = select  i1 %".450", i64 16, i64 0
  %".469" = add i64 %".445", %".468"
  %".470" = select  i1 %".450", <4 x float> %".454", <4 x float> %".451"
  %".471" = select  i1 %".450", <4 x float> %".455", <4 x float> %".452"
  %".472" = select  i1 %".450", <4 x float> %".456", <4 x float> %".453"
  %".473" = and i64 %".409", 2
  %".474" = icmp ne i64 %".473", 0
  %".475" = shufflevector <4 x float> %".470", <4 x float> %".470", <2 x i32> <i32 0, i32 1>
  %".476" = shufflevector <4 x float> %".471", <4 x float> %".471", <2 x i32> <i32 0, i32 1>
  %".477" = shufflevector <4 x float> %".472", <4 x float> %".472", <2 x i32> <i32 0, i32 1>
  %".478" = shufflevector <4 x float> %".470", <4 x float> %".470", <2 x i32> <i32 2, i32 3>
  %".479" = shufflevector <4 x float> %".471", <4 x float> %".471", <2 x i32> <i32 2, i32 3>
  %".480" = shufflevector <4 x float> %".472", <4 x float> %".472", <2 x i32> <i32 2, i32 3>
  br i1 %".474", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".482" = add i64 %".417", %".469"
  %".483" = inttoptr i64 %".482" to <2 x float>*
  store <2 x float> %".475", <2 x float>* %".483", align 4
  %".485" = add i64 %".423", %".469"
  %".486" = inttoptr i64 %".485" to <2 x float>*
  store <2 x float> %".476", <2 x float>* %".486", align 4
  %".488" = add i64 %".429", %".469"
  %".489" = inttoptr i64 %".488" to <2 x float>*
  store <2 x float> %".477", <2 x float>* %".489", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".492" = select  i1 %".474", i64 8, i64 0
  %".493" = add i64 %".469", %".492"
  %".494" = select  i1 %".474", <2 x float> %".478", <2 x float> %".475"
  %".495" = select  i1 %".474", <2 x float> %".479", <2 x float> %".476"
  %".496" = select  i1 %".474", <2 x float> %".480", <2 x float> %".477"
  %".497" = and i64 %".409", 1
  %".498" = icmp ne i64 %".497", 0
  %".499" = shufflevector <2 x float> %".494", <2 x float> %".494", <1 x i32> <i32 0>
  %".500" = shufflevector <2 x float> %".495", <2 x float> %".495", <1 x i32> <i32 0>
  %".501" = shufflevector <2 x float> %".496", <2 x float> %".496", <1 x i32> <i32 0>
  %".502" = shufflevector <2 x float> %".494", <2 x float> %".494", <1 x i32> <i32 1>
  %".503" = shufflevector <2 x float> %".495", <2 x float> %".495", <1 x i32> <i32 1>
  %".504" = shufflevector <2 x float> %".496", <2 x float> %".496", <1 x i32> <i32 1>
  br i1 %".498", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".506" = add i64 %".417", %".493"
  %".507" = inttoptr i64 %".506" to <1 x float>*
  store <1 x float> %".499", <1 x float>* %".507", align 4
  %".509" = add i64 %".423", %".493"
  %".510" = inttoptr i64 %".509" to <1 x float>*
  store <1 x float> %".500", <1 x float>* %".510", align 4
  %".512" = add i64 %".429", %".493"
  %".513" = inttoptr i64 %".512" to <1 x float>*
  store <1 x float> %".501", <1 x float>* %".513", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".516" = select  i1 %".498", i64 4, i64 0
  %".517" = add i64 %".493", %".516"
  %".518" = select  i1 %".498", <1 x float> %".502", <1 x float> %".499"
  %".519" = select  i1 %".498", <1 x float> %".503", <1 x float> %".500"
  %".520" = select  i1 %".498", <1 x float> %".504", <1 x float> %".501"
  br label %"end.5"
final.if:
  %".568" = add i64 %".551", 0
  %".569" = inttoptr i64 %".568" to <8 x float>*
  store <8 x float> %".381", <8 x float>* %".569", align 4
  %".571" = add i64 %".557", 0
  %".572" = inttoptr i64 %".571" to <8 x float>*
  store <8 x float> %".383", <8 x float>* %".572", align 4
  %".574" = add i64 %".563", 0
  %".575" = inttoptr i64 %".574" to <8 x float>*
  store <8 x float> %".385", <8 x float>* %".575", align 4
  br label %"final.endif"
final.endif:
  %".578" = select  i1 %".566", i64 32, i64 0
  %".579" = add i64 0, %".578"
  %".580" = select  i1 %".566", <8 x float> %".381", <8 x float> %".381"
  %".581" = select  i1 %".566", <8 x float> %".383", <8 x float> %".383"
  %".582" = select  i1 %".566", <8 x float> %".385", <8 x float> %".385"
  %".583" = and i64 %".543", 4
  %".584" = icmp ne i64 %".583", 0
  %".585" = shufflevector <8 x float> %".580", <8 x float> %".580", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".586" = shufflevector <8 x float> %".581", <8 x float> %".581", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".587" = shufflevector <8 x float> %".582", <8 x float> %".582", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".588" = shufflevector <8 x float> %".580", <8 x float> %".580", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".589" = shufflevector <8 x float> %".581", <8 x float> %".581", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".590" = shufflevector <8 x float> %".582", <8 x float> %".582", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".584", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".592" = add i64 %".551", %".579"
  %".593" = inttoptr i64 %".592" to <4 x float>*
  store <4 x float> %".585", <4 x float>* %".593", align 4
  %".595" = add i64 %".557", %".579"
  %".596" = inttoptr i64 %".595" to <4 x float>*
  store <4 x float> %".586", <4 x float>* %".596", align 4
  %".598" = add i64 %".563", %".579"
  %".599" = inttoptr i64 %".598" to <4 x float>*
  store <4 x float> %".587", <4 x float>* %".599", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".602" = select  i1 %".584", i64 16, i64 0
  %".603" = add i64 %".579", %".602"
  %".604" = select  i1 %".584", <4 x float> %".588", <4 x float> %".585"
  %".605" = select  i1 %".584", <4 x float> %".589", <4 x float> %".586"
  %".606" = select  i1 %".584", <4 x float> %".590", <4 x float> %".587"
  %".607" = and i64 %".543", 2
  %".608" = icmp ne i64 %".607", 0
  %".609" = shufflevector <4 x float> %".604", <4 x float> %".604", <2 x i32> <i32 0, i32 1>
  %".610" = shufflevector <4 x float> %".605", <4 x float> %".605", <2 x i32> <i32 0, i32 1>
  %".611" = shufflevector <4 x float> %".606", <4 x float> %".606", <2 x i32> <i32 0, i32 1>
  %".612" = shufflevector <4 x float> %".604", <4 x float> %".604", <2 x i32> <i32 2, i32 3>
  %".613" = shufflevector <4 x float> %".605", <4 x float> %".605", <2 x i32> <i32 2, i32 3>
  %".614" = shufflevector <4 x float> %".606", <4 x float> %".606", <2 x i32> <i32 2, i32 3>
  br i1 %".608", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".616" = add i64 %".551", %".603"
  %".617" = inttoptr i64 %".616" to <2 x float>*
  store <2 x float> %".609", <2 x float>* %".617", align 4
  %".619" = add i64 %".557", %".603"
  %".620" = inttoptr i64 %".619" to <2 x float>*
  store <2 x float> %".610", <2 x float>* %".620", align 4
  %".622" = add i64 %".563", %".603"
  %".623" = inttoptr i64 %".622" to <2 x float>*
  store <2 x float> %".611", <2 x float>* %".623", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".626" = select  i1 %".608", i64 8, i64 0
  %".627" = add i64 %".603", %".626"
  %".628" = select  i1 %".608", <2 x float> %".612", <2 x float> %".609"
  %".629" = select  i1 %".608", <2 x float> %".613", <2 x float> %".610"
  %".630" = select  i1 %".608", <2 x float> %".614", <2 x float> %".611"
  %".631" = and i64 %".543", 1
  %".632" = icmp ne i64 %".631", 0
  %".633" = shufflevector <2 x float> %".628", <2 x float> %".628", <1 x i32> <i32 0>
  %".634" = shufflevector <2 x float> %".629", <2 x float> %".629", <1 x i32> <i32 0>
  %".635" = shufflevector <2 x float> %".630", <2 x float> %".630", <1 x i32> <i32 0>
  %".636" = shufflevector <2 x float> %".628", <2 x float> %".628", <1 x i32> <i32 1>
  %".637" = shufflevector <2 x float> %".629", <2 x float> %".629", <1 x i32> <i32 1>
  %".638" = shufflevector <2 x float> %".630", <2 x float> %".630", <1 x i32> <i32 1>
  br i1 %".632", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".640" = add i64 %".551", %".627"
  %".641" = inttoptr i64 %".640" to <1 x float>*
  store <1 x float> %".633", <1 x float>* %".641", align 4
  %".643" = add i64 %".557", %".627"
  %".644" = inttoptr i64 %".643" to <1 x float>*
  store <1 x float> %".634", <1 x float>* %".644", align 4
  %".646" = add i64 %".563", %".627"
  %".647" = inttoptr i64 %".646" to <1 x float>*
  store <1 x float> %".635", <1 x float>* %".647", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".650" = select  i1 %".632", i64 4, i64 0
  %".651" = add i64 %".627", %".650"
  %".652" = select  i1 %".632", <1 x float> %".636", <1 x float> %".633"
  %".653" = select  i1 %".632", <1 x float> %".637", <1 x float> %".634"
  %".654" = select  i1 %".632", <1 x float> %".638", <1 x float> %".635"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
