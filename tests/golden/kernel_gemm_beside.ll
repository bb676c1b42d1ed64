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
  %".22" = add i64 %".11", 8
  %".23" = inttoptr i64 %".22" to i64*
  %".24" = load i64, i64* %".23"
  %".25" = inttoptr i64 %".11" to i64*
  %".26" = load i64, i64* %".25"
  br label %"head"
head:
  %".28" = phi  i64 [0, %"entry"], [%".654", %"end.1"]
  %".29" = icmp slt i64 %".28", %".26"
  br i1 %".29", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".32" = phi  i64 [0, %"body"], [%".652", %"end.5"]
  %".33" = icmp slt i64 %".32", %".24"
  br i1 %".33", label %"body.1", label %"end.1"
body.1:
  %".35" = mul i64 %".28", %".24"
  %".36" = add i64 %".35", %".32"
  %".37" = add i64 %".11", 16
  %".38" = inttoptr i64 %".37" to i64*
  %".39" = load i64, i64* %".38"
  %".40" = add i64 %".11", 24
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = mul i64 %".28", %".39"
  %".44" = mul i64 %".32", %".42"
  %".45" = add i64 %".43", %".44"
  %".46" = add i64 %".11", 32
  %".47" = inttoptr i64 %".46" to i64*
  %".48" = load i64, i64* %".47"
  %".49" = add i64 %".11", 40
  %".50" = inttoptr i64 %".49" to i64*
  %".51" = load i64, i64* %".50"
  %".52" = mul i64 %".28", %".48"
  %".53" = mul i64 %".32", %".51"
  %".54" = add i64 %".52", %".53"
  br label %"head.2"
end.1:
  %".654" = add i64 %".28", 1
  br label %"head"
head.2:
  %".56" = phi  i64 [0, %"body.1"], [%".318", %"end.4"]
  %".57" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".267", %"end.4"]
  %".58" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".268", %"end.4"]
  %".59" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".269", %"end.4"]
  %".60" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".270", %"end.4"]
  %".61" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".271", %"end.4"]
  %".62" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".272", %"end.4"]
  %".63" = icmp slt i64 %".56", %".6"
  br i1 %".63", label %"body.2", label %"end.2"
body.2:
  %".65" = mul i64 %".36", %".6"
  %".66" = add i64 %".65", %".56"
  %".67" = mul i64 %".56", 16
  %".68" = add i64 %".5", %".67"
  %".69" = inttoptr i64 %".68" to i64*
  %".70" = load i64, i64* %".69"
  %".71" = add i64 %".70", %".45"
  %".72" = add i64 %".68", 8
  %".73" = inttoptr i64 %".72" to i64*
  %".74" = load i64, i64* %".73"
  %".75" = mul i64 %".74", %".13"
  %".76" = add i64 %".2", %".75"
  %".77" = sdiv i64 %".7", 4
  %".78" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".320" = icmp ne i64 %".8", 0
  br i1 %".320", label %"go", label %"again"
head.3:
  %".80" = phi  i64 [0, %"body.2"], [%".257", %"body.3"]
  %".81" = phi  <8 x float> [%".57", %"body.2"], [%".239", %"body.3"]
  %".82" = phi  <8 x float> [%".58", %"body.2"], [%".240", %"body.3"]
  %".83" = phi  <8 x float> [%".59", %"body.2"], [%".247", %"body.3"]
  %".84" = phi  <8 x float> [%".60", %"body.2"], [%".248", %"body.3"]
  %".85" = phi  <8 x float> [%".61", %"body.2"], [%".255", %"body.3"]
  %".86" = phi  <8 x float> [%".62", %"body.2"], [%".256", %"body.3"]
  %".87" = icmp slt i64 %".80", %".77"
  br i1 %".87", label %"body.3", label %"end.3"
body.3:
  %".89" = mul i64 %".80", 4
  %".90" = add i64 %".89", 0
  %".91" = mul i64 %".90", %".13"
  %".92" = add i64 %".76", %".91"
  %".93" = mul i64 %".90", %".12"
  %".94" = add i64 %".71", %".93"
  %".95" = add i64 %".92", 0
  %".96" = inttoptr i64 %".95" to <8 x float>*
  %".97" = load <8 x float>, <8 x float>* %".96", align 4
  %".98" = icmp ult i64 %".10", 8
  %".99" = select  i1 %".98", i64 %".10", i64 8
  %".100" = trunc i64 %".10" to i32
  %".101" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".100", i32 0
  %".102" = shufflevector <8 x i32> %".101", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".103" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".102"
  %".104" = add i64 %".92", 32
  %".105" = inttoptr i64 %".104" to <8 x float>*
  %".106" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".105", i32 4, <8 x i1> %".103", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".107" = add i64 %".16", %".94"
  %".108" = add i64 %".107", 0
  %".109" = inttoptr i64 %".108" to float*
  %".110" = load float, float* %".109"
  %".111" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".110", i32 0
  %".112" = shufflevector <8 x float> %".111", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".113" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".112", <8 x float> %".97", <8 x float> %".81")
  %".114" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".112", <8 x float> %".106", <8 x float> %".82")
  %".115" = add i64 %".18", %".94"
  %".116" = add i64 %".115", 4
  %".117" = inttoptr i64 %".116" to float*
  %".118" = load float, float* %".117"
  %".119" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".118", i32 0
  %".120" = shufflevector <8 x float> %".119", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".121" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".120", <8 x float> %".97", <8 x float> %".83")
  %".122" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".120", <8 x float> %".106", <8 x float> %".84")
  %".123" = add i64 %".20", %".94"
  %".124" = add i64 %".123", 8
  %".125" = inttoptr i64 %".124" to float*
  %".126" = load float, float* %".125"
  %".127" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".126", i32 0
  %".128" = shufflevector <8 x float> %".127", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".129" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".97", <8 x float> %".85")
  %".130" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".106", <8 x float> %".86")
  %".131" = mul i64 %".80", 4
  %".132" = add i64 %".131", 1
  %".133" = mul i64 %".132", %".13"
  %".134" = add i64 %".76", %".133"
  %".135" = mul i64 %".132", %".12"
  %".136" = add i64 %".71", %".135"
  %".137" = add i64 %".134", 0
  %".138" = inttoptr i64 %".137" to <8 x float>*
  %".139" = load <8 x float>, <8 x float>* %".138", align 4
  %".140" = icmp ult i64 %".10", 8
  %".141" = select  i1 %".140", i64 %".10", i64 8
  %".142" = trunc i64 %".10" to i32
  %".143" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".142", i32 0
  %".144" = shufflevector <8 x i32> %".143", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".145" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".144"
  %".146" = add i64 %".134", 32
  %".147" = inttoptr i64 %".146" to <8 x float>*
  %".148" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".147", i32 4, <8 x i1> %".145", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".149" = add i64 %".16", %".136"
  %".150" = add i64 %".149", 0
  %".151" = inttoptr i64 %".150" to float*
  %".152" = load float, float* %".151"
  %".153" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".152", i32 0
  %".154" = shufflevector <8 x float> %".153", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".139", <8 x float> %".113")
  %".156" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".148", <8 x float> %".114")
  %".157" = add i64 %".18", %".136"
  %".158" = add i64 %".157", 4
  %".159" = inttoptr i64 %".158" to float*
  %".160" = load float, float* %".159"
  %".161" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".160", i32 0
  %".162" = shufflevector <8 x float> %".161", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".163" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".162", <8 x float> %".139", <8 x float> %".121")
  %".164" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".162", <8 x float> %".148", <8 x float> %".122")
  %".165" = add i64 %".20", %".136"
  %".166" = add i64 %".165", 8
  %".167" = inttoptr i64 %".166" to float*
  %".168" = load float, float* %".167"
  %".169" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".168", i32 0
  %".170" = shufflevector <8 x float> %".169", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".171" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".170", <8 x float> %".139", <8 x float> %".129")
  %".172" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".170", <8 x float> %".148", <8 x float> %".130")
  %".173" = mul i64 %".80", 4
  %".174" = add i64 %".173", 2
  %".175" = mul i64 %".174", %".13"
  %".176" = add i64 %".76", %".175"
  %".177" = mul i64 %".174", %".12"
  %".178" = add i64 %".71", %".177"
  %".179" = add i64 %".176", 0
  %".180" = inttoptr i64 %".179" to <8 x float>*
  %".181" = load <8 x float>, <8 x float>* %".180", align 4
  %".182" = icmp ult i64 %".10", 8
  %".183" = select  i1 %".182", i64 %".10", i64 8
  %".184" = trunc i64 %".10" to i32
  %".185" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".184", i32 0
  %".186" = shufflevector <8 x i32> %".185", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".187" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".186"
  %".188" = add i64 %".176", 32
  %".189" = inttoptr i64 %".188" to <8 x float>*
  %".190" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".189", i32 4, <8 x i1> %".187", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".191" = add i64 %".16", %".178"
  %".192" = add i64 %".191", 0
  %".193" = inttoptr i64 %".192" to float*
  %".194" = load float, float* %".193"
  %".195" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".194", i32 0
  %".196" = shufflevector <8 x float> %".195", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".197" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".196", <8 x float> %".181", <8 x float> %".155")
  %".198" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".196", <8 x float> %".190", <8 x float> %".156")
  %".199" = add i64 %".18", %".178"
  %".200" = add i64 %".199", 4
  %".201" = inttoptr i64 %".200" to float*
  %".202" = load float, float* %".201"
  %".203" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".202", i32 0
  %".204" = shufflevector <8 x float> %".203", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".205" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".204", <8 x float> %".181", <8 x float> %".163")
  %".206" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".204", <8 x float> %".190", <8 x float> %".164")
  %".207" = add i64 %".20", %".178"
  %".208" = add i64 %".207", 8
  %".209" = inttoptr i64 %".208" to float*
  %".210" = load float, float* %".209"
  %".211" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".210", i32 0
  %".212" = shufflevector <8 x float> %".211", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".213" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".181", <8 x float> %".171")
  %".214" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".212", <8 x float> %".190", <8 x float> %".172")
  %".215" = mul i64 %".80", 4
  %".216" = add i64 %".215", 3
  %".217" = mul i64 %".216", %".13"
  %".218" = add i64 %".76", %".217"
  %".219" = mul i64 %".216", %".12"
  %".220" = add i64 %".71", %".219"
  %".221" = add i64 %".218", 0
  %".222" = inttoptr i64 %".221" to <8 x float>*
  %".223" = load <8 x float>, <8 x float>* %".222", align 4
  %".224" = icmp ult i64 %".10", 8
  %".225" = select  i1 %".224", i64 %".10", i64 8
  %".226" = trunc i64 %".10" to i32
  %".227" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".226", i32 0
  %".228" = shufflevector <8 x i32> %".227", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".229" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".228"
  %".230" = add i64 %".218", 32
  %".231" = inttoptr i64 %".230" to <8 x float>*
  %".232" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".231", i32 4, <8 x i1> %".229", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".233" = add i64 %".16", %".220"
  %".234" = add i64 %".233", 0
  %".235" = inttoptr i64 %".234" to float*
  %".236" = load float, float* %".235"
  %".237" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".236", i32 0
  %".238" = shufflevector <8 x float> %".237", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".239" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".238", <8 x float> %".223", <8 x float> %".197")
  %".240" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".238", <8 x float> %".232", <8 x float> %".198")
  %".241" = add i64 %".18", %".220"
  %".242" = add i64 %".241", 4
  %".243" = inttoptr i64 %".242" to float*
  %".244" = load float, float* %".243"
  %".245" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".244", i32 0
  %".246" = shufflevector <8 x float> %".245", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".247" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".246", <8 x float> %".223", <8 x float> %".205")
  %".248" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".246", <8 x float> %".232", <8 x float> %".206")
  %".249" = add i64 %".20", %".220"
  %".250" = add i64 %".249", 8
  %".251" = inttoptr i64 %".250" to float*
  %".252" = load float, float* %".251"
  %".253" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".252", i32 0
  %".254" = shufflevector <8 x float> %".253", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".255" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".254", <8 x float> %".223", <8 x float> %".213")
  %".256" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".254", <8 x float> %".232", <8 x float> %".214")
  %".257" = add i64 %".80", 1
  br label %"head.3"
end.3:
  %".259" = mul i64 %".77", 4
  %".260" = add i64 %".259", 0
  %".261" = mul i64 %".260", %".13"
  %".262" = add i64 %".76", %".261"
  %".263" = mul i64 %".260", %".12"
  %".264" = add i64 %".71", %".263"
  br label %"head.4"
head.4:
  %".266" = phi  i64 [0, %"end.3"], [%".316", %"body.4"]
  %".267" = phi  <8 x float> [%".81", %"end.3"], [%".298", %"body.4"]
  %".268" = phi  <8 x float> [%".82", %"end.3"], [%".299", %"body.4"]
  %".269" = phi  <8 x float> [%".83", %"end.3"], [%".306", %"body.4"]
  %".270" = phi  <8 x float> [%".84", %"end.3"], [%".307", %"body.4"]
  %".271" = phi  <8 x float> [%".85", %"end.3"], [%".314", %"body.4"]
  %".272" = phi  <8 x float> [%".86", %"end.3"], [%".315", %"body.4"]
  %".273" = icmp slt i64 %".266", %".78"
  br i1 %".273", label %"body.4", label %"end.4"
body.4:
  %".275" = add i64 %".266", 0
  %".276" = mul i64 %".275", %".13"
  %".277" = add i64 %".262", %".276"
  %".278" = mul i64 %".275", %".12"
  %".279" = add i64 %".264", %".278"
  %".280" = add i64 %".277", 0
  %".281" = inttoptr i64 %".280" to <8 x float>*
  %".282" = load <8 x float>, <8 x float>* %".281", align 4
  %".283" = icmp ult i64 %".10", 8
  %".284" = select  i1 %".283", i64 %".10", i64 8
  %".285" = trunc i64 %".10" to i32
  %".286" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".285", i32 0
  %".287" = shufflevector <8 x i32> %".286", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".288" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".287"
  %".289" = add i64 %".277", 32
  %".290" = inttoptr i64 %".289" to <8 x float>*
  %".291" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".290", i32 4, <8 x i1> %".288", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".292" = add i64 %".16", %".279"
  %".293" = add i64 %".292", 0
  %".294" = inttoptr i64 %".293" to float*
  %".295" = load float, float* %".294"
  %".296" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".295", i32 0
  %".297" = shufflevector <8 x float> %".296", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".298" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".297", <8 x float> %".282", <8 x float> %".267")
  %".299" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".297", <8 x float> %".291", <8 x float> %".268")
  %".300" = add i64 %".18", %".279"
  %".301" = add i64 %".300", 4
  %".302" = inttoptr i64 %".301" to float*
  %".303" = load float, float* %".302"
  %".304" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".303", i32 0
  %".305" = shufflevector <8 x float> %".304", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".306" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".305", <8 x float> %".282", <8 x float> %".269")
  %".307" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".305", <8 x float> %".291", <8 x float> %".270")
  %".308" = add i64 %".20", %".279"
  %".309" = add i64 %".308", 8
  %".310" = inttoptr i64 %".309" to float*
  %".311" = load float, float* %".310"
  %".312" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".311", i32 0
  %".313" = shufflevector <8 x float> %".312", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".314" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".313", <8 x float> %".282", <8 x float> %".271")
  %".315" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".313", <8 x float> %".291", <8 x float> %".272")
  %".316" = add i64 %".266", 1
  br label %"head.4"
end.4:
  %".318" = add i64 %".56", 1
  br label %"head.2"
again:
  %".322" = inttoptr i64 %".3" to i64*
  %".323" = load i64, i64* %".322"
  %".324" = add i64 %".323", %".54"
  %".325" = add i64 %".324", 0
  %".326" = inttoptr i64 %".325" to <8 x float>*
  %".327" = load <8 x float>, <8 x float>* %".326", align 4
  %".328" = icmp ult i64 %".10", 8
  %".329" = select  i1 %".328", i64 %".10", i64 8
  %".330" = trunc i64 %".10" to i32
  %".331" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".330", i32 0
  %".332" = shufflevector <8 x i32> %".331", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".333" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".332"
  %".334" = add i64 %".324", 32
  %".335" = inttoptr i64 %".334" to <8 x float>*
  %".336" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".335", i32 4, <8 x i1> %".333", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".337" = add i64 %".3", 8
  %".338" = inttoptr i64 %".337" to i64*
  %".339" = load i64, i64* %".338"
  %".340" = add i64 %".339", %".54"
  %".341" = add i64 %".340", 0
  %".342" = inttoptr i64 %".341" to <8 x float>*
  %".343" = load <8 x float>, <8 x float>* %".342", align 4
  %".344" = icmp ult i64 %".10", 8
  %".345" = select  i1 %".344", i64 %".10", i64 8
  %".346" = trunc i64 %".10" to i32
  %".347" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".346", i32 0
  %".348" = shufflevector <8 x i32> %".347", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".349" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".348"
  %".350" = add i64 %".340", 32
  %".351" = inttoptr i64 %".350" to <8 x float>*
  %".352" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".351", i32 4, <8 x i1> %".349", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".353" = add i64 %".3", 16
  %".354" = inttoptr i64 %".353" to i64*
  %".355" = load i64, i64* %".354"
  %".356" = add i64 %".355", %".54"
  %".357" = add i64 %".356", 0
  %".358" = inttoptr i64 %".357" to <8 x float>*
  %".359" = load <8 x float>, <8 x float>* %".358", align 4
  %".360" = icmp ult i64 %".10", 8
  %".361" = select  i1 %".360", i64 %".10", i64 8
  %".362" = trunc i64 %".10" to i32
  %".363" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".362", i32 0
  %".364" = shufflevector <8 x i32> %".363", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".365" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".364"
  %".366" = add i64 %".356", 32
  %".367" = inttoptr i64 %".366" to <8 x float>*
  %".368" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".367", i32 4, <8 x i1> %".365", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".370" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".327", %"again"]
  %".371" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".336", %"again"]
  %".372" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".343", %"again"]
  %".373" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".352", %"again"]
  %".374" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".359", %"again"]
  %".375" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"end.2"], [%".368", %"again"]
  %".376" = fadd <8 x float> %".57", %".370"
  %".377" = fadd <8 x float> %".58", %".371"
  %".378" = fadd <8 x float> %".59", %".372"
  %".379" = fadd <8 x float> %".60", %".373"
  %".380" = fadd <8 x float> %".61", %".374"
  %".381" = fadd <8 x float> %".62", %".375"
  %".382" = icmp ne i64 %".9", 0
  br i1 %".382", label %"final", label %"partial"
partial:
  %".384" = inttoptr i64 %".3" to i64*
  %".385" = load i64, i64* %".384"
  %".386" = add i64 %".385", %".54"
  %".387" = add i64 %".386", 0
  %".388" = inttoptr i64 %".387" to <8 x float>*
  store <8 x float> %".376", <8 x float>* %".388", align 4
  %".390" = add i64 %".3", 8
  %".391" = inttoptr i64 %".390" to i64*
  %".392" = load i64, i64* %".391"
  %".393" = add i64 %".392", %".54"
  %".394" = add i64 %".393", 0
  %".395" = inttoptr i64 %".394" to <8 x float>*
  store <8 x float> %".378", <8 x float>* %".395", align 4
  %".397" = add i64 %".3", 16
  %".398" = inttoptr i64 %".397" to i64*
  %".399" = load i64, i64* %".398"
  %".400" = add i64 %".399", %".54"
  %".401" = add i64 %".400", 0
  %".402" = inttoptr i64 %".401" to <8 x float>*
  store <8 x float> %".380", <8 x float>* %".402", align 4
  %".404" = icmp ult i64 %".10", 8
  %".405" = select  i1 %".404", i64 %".10", i64 8
  %".406" = trunc i64 %".10" to i32
  %".407" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".406", i32 0
  %".408" = shufflevector <8 x i32> %".407", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".409" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".408"
  %".410" = inttoptr i64 %".3" to i64*
  %".411" = load i64, i64* %".410"
  %".412" = add i64 %".411", %".54"
  %".413" = add i64 %".412", 32
  %".414" = inttoptr i64 %".413" to <8 x float>*
  %".415" = add i64 %".3", 8
  %".416" = inttoptr i64 %".415" to i64*
  %".417" = load i64, i64* %".416"
  %".418" = add i64 %".417", %".54"
  %".419" = add i64 %".418", 32
  %".420" = inttoptr i64 %".419" to <8 x float>*
  %".421" = add i64 %".3", 16
  %".422" = inttoptr i64 %".421" to i64*
  %".423" = load i64, i64* %".422"
  %".424" = add i64 %".423", %".54"
  %".425" = add i64 %".424", 32
  %".426" = inttoptr i64 %".425" to <8 x float>*
  %".427" = and i64 %".405", 8
  %".428" = icmp ne i64 %".427", 0
  br i1 %".428", label %"partial.if", label %"partial.endif"
final:
  %".518" = inttoptr i64 %".3" to i64*
  %".519" = load i64, i64* %".518"
  %".520" = add i64 %".519", %".54"
  %".521" = add i64 %".520", 0
  %".522" = inttoptr i64 %".521" to <8 x float>*
  store <8 x float> %".376", <8 x float>* %".522", align 4
  %".524" = add i64 %".3", 8
  %".525" = inttoptr i64 %".524" to i64*
  %".526" = load i64, i64* %".525"
  %".527" = add i64 %".526", %".54"
  %".528" = add i64 %".527", 0
  %".529" = inttoptr i64 %".528" to <8 x float>*
  store <8 x float> %".378", <8 x float>* %".529", align 4
  %".531" = add i64 %".3", 16
  %".532" = inttoptr i64 %".531" to i64*
  %".533" = load i64, i64* %".532"
  %".534" = add i64 %".533", %".54"
  %".535" = add i64 %".534", 0
  %".536" = inttoptr i64 %".535" to <8 x float>*
  store <8 x float> %".380", <8 x float>* %".536", align 4
  %".538" = icmp ult i64 %".10", 8
  %".539" = select  i1 %".538", i64 %".10", i64 8
  %".540" = trunc i64 %".10" to i32
  %".541" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".540", i32 0
  %".542" = shufflevector <8 x i32> %".541", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".543" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".542"
  %".544" = inttoptr i64 %".3" to i64*
  %".545" = load i64, i64* %".544"
  %".546" = add i64 %".545", %".54"
  %".547" = add i64 %".546", 32
  %".548" = inttoptr i64 %".547" to <8 x float>*
  %".549" = add i64 %".3", 8
  %".550" = inttoptr i64 %".549" to i64*
  %".551" = load i64, i64* %".550"
  %".552" = add i64 %".551", %".54"
  %".553" = add i64 %".552", 32
  %".554" = inttoptr i64 %".553" to <8 x float>*
  %".555" = add i64 %".3", 16
  %".556" = inttoptr i64 %".555" to i64*
  %".557" = load i64, i64* %".556"
  %".558" = add i64 %".557", %".54"
  %".559" = add i64 %".558", 32
  %".560" = inttoptr i64 %".559" to <8 x float>*
  %".561" = and i64 %".539", 8
  %".562" = icmp ne i64 %".561", 0
  br i1 %".562", label %"final.if", label %"final.endif"
end.5:
  %".652" = add i64 %".32", 1
  br label %"head.1"
partial.if:
  %".430" = add i64 %".413", 0
  %".431" = inttoptr i64 %".430" to <8 x float>*
  store <8 x float> %".377", <8 x float>* %".431", align 4
  %".433" = add i64 %".419", 0
  %".434" = inttoptr i64 %".433" to <8 x float>*
  store <8 x float> %".379", <8 x float>* %".434", align 4
  %".436" = add i64 %".425", 0
  %".437" = inttoptr i64 %".436" to <8 x float>*
  store <8 x float> %".381", <8 x float>* %".437", align 4
  br label %"partial.endif"
partial.endif:
  %".440" = select  i1 %".428", i64 32, i64 0
  %".441" = add i64 0, %".440"
  %".442" = select  i1 %".428", <8 x float> %".377", <8 x float> %".377"
  %".443" = select  i1 %".428", <8 x float> %".379", <8 x float> %".379"
  %".444" = select  i1 %".428", <8 x float> %".381", <8 x float> %".381"
  %".445" = and i64 %".405", 4
  %".446" = icmp ne i64 %".445", 0
  %".447" = shufflevector <8 x float> %".442", <8 x float> %".442", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".448" = shufflevector <8 x float> %".443", <8 x float> %".443", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".449" = shufflevector <8 x float> %".444", <8 x float> %".444", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".450" = shufflevector <8 x float> %".442", <8 x float> %".442", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".451" = shufflevector <8 x float> %".443", <8 x float> %".443", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".452" = shufflevector <8 x float> %".444", <8 x float> %".444", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".446", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".454" = add i64 %".413", %".441"
  %".455" = inttoptr i64 %".454" to <4 x float>*
  store <4 x float> %".447", <4 x float>* %".455", align 4
  %".457" = add i64 %".419", %".441"
  %".458" = inttoptr i64 %".457" to <4 x float>*
  store <4 x float> %".448", <4 x float>* %".458", align 4
  %".460" = add i64 %".425", %".441"
  %".461" = inttoptr i64 %".460" to <4 x float>*
  store <4 x float> %".449", <4 x float>* %".461", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".464" = select  i1 %".446", i64 16, i64 0
  %".465" = add i64 %".441", %".464"
  %".466" = select  i1 %".446", <4 x float> %".450", <4 x float> %".447"
  %".467" = select  i1 %".446", <4 x float> %".451", <4 x float> %".448"
  %".468" = select  i1 %".446", <4 x float> %".452", <4 x float> %".449"
  %".469" = and i64 %".405", 2
  %".470" = icmp ne i64 %".469", 0
  %".471" = shufflevector <4 x float> %".466", <4 x float> %".466", <2 x i32> <i32 0, i32 1>
  %".472" = shufflevector <4 x float> %".467", <4 x float> %".467", <2 x i32> <i32 0, i32 1>
  %".473" = shufflevector <4 x float> %".468", <4 x float> %".468", <2 x i32> <i32 0, i32 1>
  %".474" = shufflevector <4 x float> %".466", <4 x float> %".466", <2 x i32> <i32 2, i32 3>
  %".475" = shufflevector <4 x float> %".467", <4 x float> %".467", <2 x i32> <i32 2, i32 3>
  %".476" = shufflevector <4 x float> %".468", <4 x float> %".468", <2 x i32> <i32 2, i32 3>
  br i1 %".470", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".478" = add i64 %".413", %".465"
  %".479" = inttoptr i64 %".478" to <2 x float>*
  store <2 x float> %".471", <2 x float>* %".479", align 4
  %".481" = add i64 %".419", %".465"
  %".482" = inttoptr i64 %".481" to <2 x float>*
  store <2 x float> %".472", <2 x float>* %".482", align 4
  %".484" = add i64 %".425", %".465"
  %".485" = inttoptr i64 %".484" to <2 x float>*
  store <2 x float> %".473", <2 x float>* %".485", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".488" = select  i1 %".470", i64 8, i64 0
  %".489" = add i64 %".465", %".488"
  %".490" = select  i1 %".470", <2 x float> %".474", <2 x float> %".471"
  %".491" = select  i1 %".470", <2 x float> %".475", <2 x float> %".472"
  %".492" = select  i1 %".470", <2 x float> %".476", <2 x float> %".473"
  %".493" = and i64 %".405", 1
  %".494" = icmp ne i64 %".493", 0
  %".495" = shufflevector <2 x float> %".490", <2 x float> %".490", <1 x i32> <i32 0>
  %".496" = shufflevector <2 x float> %".491", <2 x float> %".491", <1 x i32> <i32 0>
  %".497" = shufflevector <2 x float> %".492", <2 x float> %".492", <1 x i32> <i32 0>
  %".498" = shufflevector <2 x float> %".490", <2 x float> %".490", <1 x i32> <i32 1>
  %".499" = shufflevector <2 x float> %".491", <2 x float> %".491", <1 x i32> <i32 1>
  %".500" = shufflevector <2 x float> %".492", <2 x float> %".492", <1 x i32> <i32 1>
  br i1 %".494", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".502" = add i64 %".413", %".489"
  %".503" = inttoptr i64 %".502" to <1 x float>*
  store <1 x float> %".495", <1 x float>* %".503", align 4
  %".505" = add i64 %".419", %".489"
  %".506" = inttoptr i64 %".505" to <1 x float>*
  store <1 x float> %".496", <1 x float>* %".506", align 4
  %".508" = add i64 %".425", %".489"
  %".509" = inttoptr i64 %".508" to <1 x float>*
  store <1 x float> %".497", <1 x float>* %".509", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".512" = select  i1 %".494", i64 4, i64 0
  %".513" = add i64 %".489", %".512"
  %".514" = select  i1 %".494", <1 x float> %".498", <1 x float> %".495"
  %".515" = select  i1 %".494", <1 x float> %".499", <1 x float> %".496"
  %".516" = select  i1 %".494", <1 x float> %".500", <1 x float> %".497"
  br label %"end.5"
final.if:
  %".564" = add i64 %".547", 0
  %".565" = inttoptr i64 %".564" to <8 x float>*
  store <8 x float> %".377", <8 x float>* %".565", align 4
  %".567" = add i64 %".553", 0
  %".568" = inttoptr i64 %".567" to <8 x float>*
  store <8 x float> %".379", <8 x float>* %".568", align 4
  %".570" = add i64 %".559", 0
  %".571" = inttoptr i64 %".570" to <8 x float>*
  store <8 x float> %".381", <8 x float>* %".571", align 4
  br label %"final.endif"
final.endif:
  %".574" = select  i1 %".562", i64 32, i64 0
  %".575" = add i64 0, %".574"
  %".576" = select  i1 %".562", <8 x float> %".377", <8 x float> %".377"
  %".577" = select  i1 %".562", <8 x float> %".379", <8 x float> %".379"
  %".578" = select  i1 %".562", <8 x float> %".381", <8 x float> %".381"
  %".579" = and i64 %".539", 4
  %".580" = icmp ne i64 %".579", 0
  %".581" = shufflevector <8 x float> %".576", <8 x float> %".576", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".582" = shufflevector <8 x float> %".577", <8 x float> %".577", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".583" = shufflevector <8 x float> %".578", <8 x float> %".578", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".584" = shufflevector <8 x float> %".576", <8 x float> %".576", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".585" = shufflevector <8 x float> %".577", <8 x float> %".577", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %".586" = shufflevector <8 x float> %".578", <8 x float> %".578", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".580", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".588" = add i64 %".547", %".575"
  %".589" = inttoptr i64 %".588" to <4 x float>*
  store <4 x float> %".581", <4 x float>* %".589", align 4
  %".591" = add i64 %".553", %".575"
  %".592" = inttoptr i64 %".591" to <4 x float>*
  store <4 x float> %".582", <4 x float>* %".592", align 4
  %".594" = add i64 %".559", %".575"
  %".595" = inttoptr i64 %".594" to <4 x float>*
  store <4 x float> %".583", <4 x float>* %".595", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".598" = select  i1 %".580", i64 16, i64 0
  %".599" = add i64 %".575", %".598"
  %".600" = select  i1 %".580", <4 x float> %".584", <4 x float> %".581"
  %".601" = select  i1 %".580", <4 x float> %".585", <4 x float> %".582"
  %".602" = select  i1 %".580", <4 x float> %".586", <4 x float> %".583"
  %".603" = and i64 %".539", 2
  %".604" = icmp ne i64 %".603", 0
  %".605" = shufflevector <4 x float> %".600", <4 x float> %".600", <2 x i32> <i32 0, i32 1>
  %".606" = shufflevector <4 x float> %".601", <4 x float> %".601", <2 x i32> <i32 0, i32 1>
  %".607" = shufflevector <4 x float> %".602", <4 x float> %".602", <2 x i32> <i32 0, i32 1>
  %".608" = shufflevector <4 x float> %".600", <4 x float> %".600", <2 x i32> <i32 2, i32 3>
  %".609" = shufflevector <4 x float> %".601", <4 x float> %".601", <2 x i32> <i32 2, i32 3>
  %".610" = shufflevector <4 x float> %".602", <4 x float> %".602", <2 x i32> <i32 2, i32 3>
  br i1 %".604", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".612" = add i64 %".547", %".599"
  %".613" = inttoptr i64 %".612" to <2 x float>*
  store <2 x float> %".605", <2 x float>* %".613", align 4
  %".615" = add i64 %".553", %".599"
  %".616" = inttoptr i64 %".615" to <2 x float>*
  store <2 x float> %".606", <2 x float>* %".616", align 4
  %".618" = add i64 %".559", %".599"
  %".619" = inttoptr i64 %".618" to <2 x float>*
  store <2 x float> %".607", <2 x float>* %".619", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".622" = select  i1 %".604", i64 8, i64 0
  %".623" = add i64 %".599", %".622"
  %".624" = select  i1 %".604", <2 x float> %".608", <2 x float> %".605"
  %".625" = select  i1 %".604", <2 x float> %".609", <2 x float> %".606"
  %".626" = select  i1 %".604", <2 x float> %".610", <2 x float> %".607"
  %".627" = and i64 %".539", 1
  %".628" = icmp ne i64 %".627", 0
  %".629" = shufflevector <2 x float> %".624", <2 x float> %".624", <1 x i32> <i32 0>
  %".630" = shufflevector <2 x float> %".625", <2 x float> %".625", <1 x i32> <i32 0>
  %".631" = shufflevector <2 x float> %".626", <2 x float> %".626", <1 x i32> <i32 0>
  %".632" = shufflevector <2 x float> %".624", <2 x float> %".624", <1 x i32> <i32 1>
  %".633" = shufflevector <2 x float> %".625", <2 x float> %".625", <1 x i32> <i32 1>
  %".634" = shufflevector <2 x float> %".626", <2 x float> %".626", <1 x i32> <i32 1>
  br i1 %".628", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".636" = add i64 %".547", %".623"
  %".637" = inttoptr i64 %".636" to <1 x float>*
  store <1 x float> %".629", <1 x float>* %".637", align 4
  %".639" = add i64 %".553", %".623"
  %".640" = inttoptr i64 %".639" to <1 x float>*
  store <1 x float> %".630", <1 x float>* %".640", align 4
  %".642" = add i64 %".559", %".623"
  %".643" = inttoptr i64 %".642" to <1 x float>*
  store <1 x float> %".631", <1 x float>* %".643", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".646" = select  i1 %".628", i64 4, i64 0
  %".647" = add i64 %".623", %".646"
  %".648" = select  i1 %".628", <1 x float> %".632", <1 x float> %".629"
  %".649" = select  i1 %".628", <1 x float> %".633", <1 x float> %".630"
  %".650" = select  i1 %".628", <1 x float> %".634", <1 x float> %".631"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
