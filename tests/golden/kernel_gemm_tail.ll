; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14", i64 %".15", i64 %".16")
{
entry:
  %".18" = inttoptr i64 %".1" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = mul i64 %".7", 64
  br label %"head"
head:
  %".22" = phi  i64 [0, %"entry"], [%".321", %"end.4"]
  %".23" = icmp slt i64 %".22", %".11"
  br i1 %".23", label %"body", label %"end"
body:
  %".25" = mul i64 %".22", %".12"
  %".26" = mul i64 %".22", %".13"
  %".27" = icmp ne i64 %".8", 0
  br i1 %".27", label %"go", label %"again"
end:
  ret void
again:
  %".29" = inttoptr i64 %".3" to i64*
  %".30" = load i64, i64* %".29"
  %".31" = add i64 %".30", %".26"
  %".32" = add i64 %".31", 0
  %".33" = inttoptr i64 %".32" to <8 x float>*
  %".34" = load <8 x float>, <8 x float>* %".33", align 4
  %".35" = icmp ult i64 %".10", 8
  %".36" = select  i1 %".35", i64 %".10", i64 8
  %".37" = trunc i64 %".10" to i32
  %".38" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".37", i32 0
  %".39" = shufflevector <8 x i32> %".38", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".40" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".39"
  %".41" = add i64 %".31", 32
  %".42" = inttoptr i64 %".41" to <8 x float>*
  %".43" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".42", i32 4, <8 x i1> %".40", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".45" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".34", %"again"]
  %".46" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".43", %"again"]
  br label %"head.1"
head.1:
  %".48" = phi  i64 [0, %"go"], [%".189", %"end.3"]
  %".49" = phi  <8 x float> [%".45", %"go"], [%".163", %"end.3"]
  %".50" = phi  <8 x float> [%".46", %"go"], [%".164", %"end.3"]
  %".51" = icmp slt i64 %".48", %".6"
  br i1 %".51", label %"body.1", label %"end.1"
body.1:
  %".53" = mul i64 %".48", 8
  %".54" = add i64 %".5", %".53"
  %".55" = inttoptr i64 %".54" to i64*
  %".56" = load i64, i64* %".55"
  %".57" = add i64 %".56", %".25"
  %".58" = mul i64 %".48", %".20"
  %".59" = add i64 %".2", %".58"
  %".60" = sdiv i64 %".7", 4
  %".61" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".191" = icmp ne i64 %".9", 0
  br i1 %".191", label %"final", label %"partial"
head.2:
  %".63" = phi  i64 [0, %"body.1"], [%".152", %"body.2"]
  %".64" = phi  <8 x float> [%".49", %"body.1"], [%".150", %"body.2"]
  %".65" = phi  <8 x float> [%".50", %"body.1"], [%".151", %"body.2"]
  %".66" = icmp slt i64 %".63", %".60"
  br i1 %".66", label %"body.2", label %"end.2"
body.2:
  %".68" = mul i64 %".63", 4
  %".69" = mul i64 %".68", 64
  %".70" = add i64 %".59", %".69"
  %".71" = add i64 %".70", 0
  %".72" = mul i64 %".68", 4
  %".73" = add i64 %".57", %".72"
  %".74" = add i64 %".73", 0
  %".75" = add i64 %".71", 0
  %".76" = inttoptr i64 %".75" to <8 x float>*
  %".77" = load <8 x float>, <8 x float>* %".76", align 4
  %".78" = add i64 %".71", 32
  %".79" = inttoptr i64 %".78" to <8 x float>*
  %".80" = load <8 x float>, <8 x float>* %".79", align 4
  %".81" = add i64 %".19", %".74"
  %".82" = add i64 %".81", 0
  %".83" = inttoptr i64 %".82" to float*
  %".84" = load float, float* %".83"
  %".85" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".84", i32 0
  %".86" = shufflevector <8 x float> %".85", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".87" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".86", <8 x float> %".77", <8 x float> %".64")
  %".88" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".86", <8 x float> %".80", <8 x float> %".65")
  %".89" = mul i64 %".63", 4
  %".90" = mul i64 %".89", 64
  %".91" = add i64 %".59", %".90"
  %".92" = add i64 %".91", 64
  %".93" = mul i64 %".89", 4
  %".94" = add i64 %".57", %".93"
  %".95" = add i64 %".94", 4
  %".96" = add i64 %".92", 0
  %".97" = inttoptr i64 %".96" to <8 x float>*
  %".98" = load <8 x float>, <8 x float>* %".97", align 4
  %".99" = add i64 %".92", 32
  %".100" = inttoptr i64 %".99" to <8 x float>*
  %".101" = load <8 x float>, <8 x float>* %".100", align 4
  %".102" = add i64 %".19", %".95"
  %".103" = add i64 %".102", 0
  %".104" = inttoptr i64 %".103" to float*
  %".105" = load float, float* %".104"
  %".106" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".105", i32 0
  %".107" = shufflevector <8 x float> %".106", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".108" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".107", <8 x float> %".98", <8 x float> %".87")
  %".109" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".107", <8 x float> %".101", <8 x float> %".88")
  %".110" = mul i64 %".63", 4
  %".111" = mul i64 %".110", 64
  %".112" = add i64 %".59", %".111"
  %".113" = add i64 %".112", 128
  %".114" = mul i64 %".110", 4
  %".115" = add i64 %".57", %".114"
  %".116" = add i64 %".115", 8
  %".117" = add i64 %".113", 0
  %".118" = inttoptr i64 %".117" to <8 x float>*
  %".119" = load <8 x float>, <8 x float>* %".118", align 4
  %".120" = add i64 %".113", 32
  %".121" = inttoptr i64 %".120" to <8 x float>*
  %".122" = load <8 x float>, <8 x float>* %".121", align 4
  %".123" = add i64 %".19", %".116"
  %".124" = add i64 %".123", 0
  %".125" = inttoptr i64 %".124" to float*
  %".126" = load float, float* %".125"
  %".127" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".126", i32 0
  %".128" = shufflevector <8 x float> %".127", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".129" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".119", <8 x float> %".108")
  %".130" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".122", <8 x float> %".109")
  %".131" = mul i64 %".63", 4
  %".132" = mul i64 %".131", 64
  %".133" = add i64 %".59", %".132"
  %".134" = add i64 %".133", 192
  %".135" = mul i64 %".131", 4
  %".136" = add i64 %".57", %".135"
  %".137" = add i64 %".136", 12
  %".138" = add i64 %".134", 0
  %".139" = inttoptr i64 %".138" to <8 x float>*
  %".140" = load <8 x float>, <8 x float>* %".139", align 4
  %".141" = add i64 %".134", 32
  %".142" = inttoptr i64 %".141" to <8 x float>*
  %".143" = load <8 x float>, <8 x float>* %".142", align 4
  %".144" = add i64 %".19", %".137"
  %".145" = add i64 %".144", 0
  %".146" = inttoptr i64 %".145" to float*
  %".147" = load float, float* %".146"
  %".148" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".147", i32 0
  %".149" = shufflevector <8 x float> %".148", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".150" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".149", <8 x float> %".140", <8 x float> %".129")
  %".151" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".149", <8 x float> %".143", <8 x float> %".130")
  %".152" = add i64 %".63", 1
  br label %"head.2"
end.2:
  %".154" = mul i64 %".60", 4
  %".155" = mul i64 %".154", 64
  %".156" = add i64 %".59", %".155"
  %".157" = add i64 %".156", 0
  %".158" = mul i64 %".154", 4
  %".159" = add i64 %".57", %".158"
  %".160" = add i64 %".159", 0
  br label %"head.3"
head.3:
  %".162" = phi  i64 [0, %"end.2"], [%".187", %"body.3"]
  %".163" = phi  <8 x float> [%".64", %"end.2"], [%".185", %"body.3"]
  %".164" = phi  <8 x float> [%".65", %"end.2"], [%".186", %"body.3"]
  %".165" = icmp slt i64 %".162", %".61"
  br i1 %".165", label %"body.3", label %"end.3"
body.3:
  %".167" = mul i64 %".162", 64
  %".168" = add i64 %".157", %".167"
  %".169" = add i64 %".168", 0
  %".170" = mul i64 %".162", 4
  %".171" = add i64 %".160", %".170"
  %".172" = add i64 %".171", 0
  %".173" = add i64 %".169", 0
  %".174" = inttoptr i64 %".173" to <8 x float>*
  %".175" = load <8 x float>, <8 x float>* %".174", align 4
  %".176" = add i64 %".169", 32
  %".177" = inttoptr i64 %".176" to <8 x float>*
  %".178" = load <8 x float>, <8 x float>* %".177", align 4
  %".179" = add i64 %".19", %".172"
  %".180" = add i64 %".179", 0
  %".181" = inttoptr i64 %".180" to float*
  %".182" = load float, float* %".181"
  %".183" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".182", i32 0
  %".184" = shufflevector <8 x float> %".183", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".185" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".184", <8 x float> %".175", <8 x float> %".163")
  %".186" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".184", <8 x float> %".178", <8 x float> %".164")
  %".187" = add i64 %".162", 1
  br label %"head.3"
end.3:
  %".189" = add i64 %".48", 1
  br label %"head.1"
partial:
  %".193" = inttoptr i64 %".3" to i64*
  %".194" = load i64, i64* %".193"
  %".195" = add i64 %".194", %".26"
  %".196" = add i64 %".195", 0
  %".197" = inttoptr i64 %".196" to <8 x float>*
  store <8 x float> %".49", <8 x float>* %".197", align 4
  %".199" = icmp ult i64 %".10", 8
  %".200" = select  i1 %".199", i64 %".10", i64 8
  %".201" = trunc i64 %".10" to i32
  %".202" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".201", i32 0
  %".203" = shufflevector <8 x i32> %".202", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".204" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".203"
  %".205" = inttoptr i64 %".3" to i64*
  %".206" = load i64, i64* %".205"
  %".207" = add i64 %".206", %".26"
  %".208" = add i64 %".207", 32
  %".209" = inttoptr i64 %".208" to <8 x float>*
  %".210" = and i64 %".200", 8
  %".211" = icmp ne i64 %".210", 0
  br i1 %".211", label %"partial.if", label %"partial.endif"
final:
  %".257" = inttoptr i64 %".3" to i64*
  %".258" = load i64, i64* %".257"
  %".259" = add i64 %".258", %".26"
  %".260" = add i64 %".259", 0
  %".261" = inttoptr i64 %".260" to <8 x float>*
  store <8 x float> %".49", <8 x float>* %".261", align 4
  %".263" = icmp ult i64 %".10", 8
  %".264" = select  i1 %".263", i64 %".10", i64 8
  %".265" = trunc i64 %".10" to i32
  %".266" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".265", i32 0
  %".267" = shufflevector <8 x i32> %".266", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".268" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".267"
  %".269" = inttoptr i64 %".3" to i64*
  %".270" = load i64, i64* %".269"
  %".271" = add i64 %".270", %".26"
  %".272" = add i64 %".271", 32
  %".273" = inttoptr i64 %".272" to <8 x float>*
  %".274" = and i64 %".264", 8
  %".275" = icmp ne i64 %".274", 0
  br i1 %".275", label %"final.if", label %"final.endif"
end.4:
  %".321" = add i64 %".22", 1
  br label %"head"
partial.if:
  %".213" = add i64 %".208", 0
  %".214" = inttoptr i64 %".213" to <8 x float>*
  store <8 x float> %".50", <8 x float>* %".214", align 4
  br label %"partial.endif"
partial.endif:
  %".217" = select  i1 %".211", i64 32, i64 0
  %".218" = add i64 0, %".217"
  %".219" = select  i1 %".211", <8 x float> %".50", <8 x float> %".50"
  %".220" = and i64 %".200", 4
  %".221" = icmp ne i64 %".220", 0
  %".222" = shufflevector <8 x float> %".219", <8 x float> %".219", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".223" = shufflevector <8 x float> %".219", <8 x float> %".219", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".221", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".225" = add i64 %".208", %".218"
  %".226" = inttoptr i64 %".225" to <4 x float>*
  store <4 x float> %".222", <4 x float>* %".226", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".229" = select  i1 %".221", i64 16, i64 0
  %".230" = add i64 %".218", %".229"
  %".231" = select  i1 %".221", <4 x float> %".223", <4 x float> %".222"
  %".232" = and i64 %".200", 2
  %".233" = icmp ne i64 %".232", 0
  %".234" = shufflevector <4 x float> %".231", <4 x float> %".231", <2 x i32> <i32 0, i32 1>
  %".235" = shufflevector <4 x float> %".231", <4 x float> %".231", <2 x i32> <i32 2, i32 3>
  br i1 %".233", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".237" = add i64 %".208", %".230"
  %".238" = inttoptr i64 %".237" to <2 x float>*
  store <2 x float> %".234", <2 x float>* %".238", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".241" = select  i1 %".233", i64 8, i64 0
  %".242" = add i64 %".230", %".241"
  %".243" = select  i1 %".233", <2 x float> %".235", <2 x float> %".234"
  %".244" = and i64 %".200", 1
  %".245" = icmp ne i64 %".244", 0
  %".246" = shufflevector <2 x float> %".243", <2 x float> %".243", <1 x i32> <i32 0>
  %".247" = shufflevector <2 x float> %".243", <2 x float> %".243", <1 x i32> <i32 1>
  br i1 %".245", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".249" = add i64 %".208", %".242"
  %".250" = inttoptr i64 %".249" to <1 x float>*
  store <1 x float> %".246", <1 x float>* %".250", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".253" = select  i1 %".245", i64 4, i64 0
  %".254" = add i64 %".242", %".253"
  %".255" = select  i1 %".245", <1 x float> %".247", <1 x float> %".246"
  br label %"end.4"
final.if:
  %".277" = add i64 %".272", 0
  %".278" = inttoptr i64 %".277" to <8 x float>*
  store <8 x float> %".50", <8 x float>* %".278", align 4
  br label %"final.endif"
final.endif:
  %".281" = select  i1 %".275", i64 32, i64 0
  %".282" = add i64 0, %".281"
  %".283" = select  i1 %".275", <8 x float> %".50", <8 x float> %".50"
  %".284" = and i64 %".264", 4
  %".285" = icmp ne i64 %".284", 0
  %".286" = shufflevector <8 x float> %".283", <8 x float> %".283", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".287" = shufflevector <8 x float> %".283", <8 x float> %".283", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".285", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".289" = add i64 %".272", %".282"
  %".290" = inttoptr i64 %".289" to <4 x float>*
  store <4 x float> %".286", <4 x float>* %".290", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".293" = select  i1 %".285", i64 16, i64 0
  %".294" = add i64 %".282", %".293"
  %".295" = select  i1 %".285", <4 x float> %".287", <4 x float> %".286"
  %".296" = and i64 %".264", 2
  %".297" = icmp ne i64 %".296", 0
  %".298" = shufflevector <4 x float> %".295", <4 x float> %".295", <2 x i32> <i32 0, i32 1>
  %".299" = shufflevector <4 x float> %".295", <4 x float> %".295", <2 x i32> <i32 2, i32 3>
  br i1 %".297", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".301" = add i64 %".272", %".294"
  %".302" = inttoptr i64 %".301" to <2 x float>*
  store <2 x float> %".298", <2 x float>* %".302", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".305" = select  i1 %".297", i64 8, i64 0
  %".306" = add i64 %".294", %".305"
  %".307" = select  i1 %".297", <2 x float> %".299", <2 x float> %".298"
  %".308" = and i64 %".264", 1
  %".309" = icmp ne i64 %".308", 0
  %".310" = shufflevector <2 x float> %".307", <2 x float> %".307", <1 x i32> <i32 0>
  %".311" = shufflevector <2 x float> %".307", <2 x float> %".307", <1 x i32> <i32 1>
  br i1 %".309", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".313" = add i64 %".272", %".306"
  %".314" = inttoptr i64 %".313" to <1 x float>*
  store <1 x float> %".310", <1 x float>* %".314", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".317" = select  i1 %".309", i64 4, i64 0
  %".318" = add i64 %".306", %".317"
  %".319" = select  i1 %".309", <1 x float> %".311", <1 x float> %".310"
  br label %"end.4"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
