; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14", i64 %".15", i64 %".16")
{
entry:
  %".18" = inttoptr i64 %".1" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = add i64 %".1", 8
  %".21" = inttoptr i64 %".20" to i64*
  %".22" = load i64, i64* %".21"
  %".23" = mul i64 %".7", 32
  br label %"head"
head:
  %".25" = phi  i64 [0, %"entry"], [%".255", %"end.4"]
  %".26" = icmp slt i64 %".25", %".11"
  br i1 %".26", label %"body", label %"end"
body:
  %".28" = mul i64 %".25", %".12"
  %".29" = mul i64 %".25", %".13"
  %".30" = icmp ne i64 %".8", 0
  br i1 %".30", label %"go", label %"again"
end:
  ret void
again:
  %".32" = inttoptr i64 %".3" to i64*
  %".33" = load i64, i64* %".32"
  %".34" = add i64 %".33", %".29"
  %".35" = add i64 %".34", 0
  %".36" = inttoptr i64 %".35" to <8 x float>*
  %".37" = load <8 x float>, <8 x float>* %".36", align 4
  %".38" = add i64 %".3", 8
  %".39" = inttoptr i64 %".38" to i64*
  %".40" = load i64, i64* %".39"
  %".41" = add i64 %".40", %".29"
  %".42" = add i64 %".41", 0
  %".43" = inttoptr i64 %".42" to <8 x float>*
  %".44" = load <8 x float>, <8 x float>* %".43", align 4
  br label %"go"
go:
  %".46" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".37", %"again"]
  %".47" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".44", %"again"]
  br label %"head.1"
head.1:
  %".49" = phi  i64 [0, %"go"], [%".205", %"end.3"]
  %".50" = phi  <8 x float> [%".46", %"go"], [%".176", %"end.3"]
  %".51" = phi  <8 x float> [%".47", %"go"], [%".177", %"end.3"]
  %".52" = icmp slt i64 %".49", %".6"
  br i1 %".52", label %"body.1", label %"end.1"
body.1:
  %".54" = mul i64 %".49", 8
  %".55" = add i64 %".5", %".54"
  %".56" = inttoptr i64 %".55" to i64*
  %".57" = load i64, i64* %".56"
  %".58" = add i64 %".57", %".28"
  %".59" = mul i64 %".49", %".23"
  %".60" = add i64 %".2", %".59"
  %".61" = sdiv i64 %".7", 4
  %".62" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".207" = inttoptr i64 %".14" to i64*
  %".208" = load i64, i64* %".207"
  %".209" = mul i64 %".25", %".208"
  %".210" = icmp ne i64 %".9", 0
  br i1 %".210", label %"final", label %"partial"
head.2:
  %".64" = phi  i64 [0, %"body.1"], [%".165", %"body.2"]
  %".65" = phi  <8 x float> [%".50", %"body.1"], [%".157", %"body.2"]
  %".66" = phi  <8 x float> [%".51", %"body.1"], [%".164", %"body.2"]
  %".67" = icmp slt i64 %".64", %".61"
  br i1 %".67", label %"body.2", label %"end.2"
body.2:
  %".69" = mul i64 %".64", 4
  %".70" = mul i64 %".69", 32
  %".71" = add i64 %".60", %".70"
  %".72" = add i64 %".71", 0
  %".73" = mul i64 %".69", 4
  %".74" = add i64 %".58", %".73"
  %".75" = add i64 %".74", 0
  %".76" = add i64 %".72", 0
  %".77" = inttoptr i64 %".76" to <8 x float>*
  %".78" = load <8 x float>, <8 x float>* %".77", align 4
  %".79" = add i64 %".19", %".75"
  %".80" = add i64 %".79", 0
  %".81" = inttoptr i64 %".80" to float*
  %".82" = load float, float* %".81"
  %".83" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".82", i32 0
  %".84" = shufflevector <8 x float> %".83", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".85" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".84", <8 x float> %".78", <8 x float> %".65")
  %".86" = add i64 %".22", %".75"
  %".87" = add i64 %".86", 0
  %".88" = inttoptr i64 %".87" to float*
  %".89" = load float, float* %".88"
  %".90" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".89", i32 0
  %".91" = shufflevector <8 x float> %".90", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".92" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".91", <8 x float> %".78", <8 x float> %".66")
  %".93" = mul i64 %".64", 4
  %".94" = mul i64 %".93", 32
  %".95" = add i64 %".60", %".94"
  %".96" = add i64 %".95", 32
  %".97" = mul i64 %".93", 4
  %".98" = add i64 %".58", %".97"
  %".99" = add i64 %".98", 4
  %".100" = add i64 %".96", 0
  %".101" = inttoptr i64 %".100" to <8 x float>*
  %".102" = load <8 x float>, <8 x float>* %".101", align 4
  %".103" = add i64 %".19", %".99"
  %".104" = add i64 %".103", 0
  %".105" = inttoptr i64 %".104" to float*
  %".106" = load float, float* %".105"
  %".107" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".106", i32 0
  %".108" = shufflevector <8 x float> %".107", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".109" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".108", <8 x float> %".102", <8 x float> %".85")
  %".110" = add i64 %".22", %".99"
  %".111" = add i64 %".110", 0
  %".112" = inttoptr i64 %".111" to float*
  %".113" = load float, float* %".112"
  %".114" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".113", i32 0
  %".115" = shufflevector <8 x float> %".114", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".116" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".115", <8 x float> %".102", <8 x float> %".92")
  %".117" = mul i64 %".64", 4
  %".118" = mul i64 %".117", 32
  %".119" = add i64 %".60", %".118"
  %".120" = add i64 %".119", 64
  %".121" = mul i64 %".117", 4
  %".122" = add i64 %".58", %".121"
  %".123" = add i64 %".122", 8
  %".124" = add i64 %".120", 0
  %".125" = inttoptr i64 %".124" to <8 x float>*
  %".126" = load <8 x float>, <8 x float>* %".125", align 4
  %".127" = add i64 %".19", %".123"
  %".128" = add i64 %".127", 0
  %".129" = inttoptr i64 %".128" to float*
  %".130" = load float, float* %".129"
  %".131" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".130", i32 0
  %".132" = shufflevector <8 x float> %".131", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".133" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".132", <8 x float> %".126", <8 x float> %".109")
  %".134" = add i64 %".22", %".123"
  %".135" = add i64 %".134", 0
  %".136" = inttoptr i64 %".135" to float*
  %".137" = load float, float* %".136"
  %".138" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".137", i32 0
  %".139" = shufflevector <8 x float> %".138", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".140" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".139", <8 x float> %".126", <8 x float> %".116")
  %".141" = mul i64 %".64", 4
  %".142" = mul i64 %".141", 32
  %".143" = add i64 %".60", %".142"
  %".144" = add i64 %".143", 96
  %".145" = mul i64 %".141", 4
  %".146" = add i64 %".58", %".145"
  %".147" = add i64 %".146", 12
  %".148" = add i64 %".144", 0
  %".149" = inttoptr i64 %".148" to <8 x float>*
  %".150" = load <8 x float>, <8 x float>* %".149", align 4
  %".151" = add i64 %".19", %".147"
  %".152" = add i64 %".151", 0
  %".153" = inttoptr i64 %".152" to float*
  %".154" = load float, float* %".153"
  %".155" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".154", i32 0
  %".156" = shufflevector <8 x float> %".155", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".157" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".156", <8 x float> %".150", <8 x float> %".133")
  %".158" = add i64 %".22", %".147"
  %".159" = add i64 %".158", 0
  %".160" = inttoptr i64 %".159" to float*
  %".161" = load float, float* %".160"
  %".162" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".161", i32 0
  %".163" = shufflevector <8 x float> %".162", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".164" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".163", <8 x float> %".150", <8 x float> %".140")
  %".165" = add i64 %".64", 1
  br label %"head.2"
end.2:
  %".167" = mul i64 %".61", 4
  %".168" = mul i64 %".167", 32
  %".169" = add i64 %".60", %".168"
  %".170" = add i64 %".169", 0
  %".171" = mul i64 %".167", 4
  %".172" = add i64 %".58", %".171"
  %".173" = add i64 %".172", 0
  br label %"head.3"
head.3:
  %".175" = phi  i64 [0, %"end.2"], [%".203", %"body.3"]
  %".176" = phi  <8 x float> [%".65", %"end.2"], [%".195", %"body.3"]
  %".177" = phi  <8 x float> [%".66", %"end.2"], [%".202", %"body.3"]
  %".178" = icmp slt i64 %".175", %".62"
  br i1 %".178", label %"body.3", label %"end.3"
body.3:
  %".180" = mul i64 %".175", 32
  %".181" = add i64 %".170", %".180"
  %".182" = add i64 %".181", 0
  %".183" = mul i64 %".175", 4
  %".184" = add i64 %".173", %".183"
  %".185" = add i64 %".184", 0
  %".186" = add i64 %".182", 0
  %".187" = inttoptr i64 %".186" to <8 x float>*
  %".188" = load <8 x float>, <8 x float>* %".187", align 4
  %".189" = add i64 %".19", %".185"
  %".190" = add i64 %".189", 0
  %".191" = inttoptr i64 %".190" to float*
  %".192" = load float, float* %".191"
  %".193" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".192", i32 0
  %".194" = shufflevector <8 x float> %".193", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".195" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".194", <8 x float> %".188", <8 x float> %".176")
  %".196" = add i64 %".22", %".185"
  %".197" = add i64 %".196", 0
  %".198" = inttoptr i64 %".197" to float*
  %".199" = load float, float* %".198"
  %".200" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".199", i32 0
  %".201" = shufflevector <8 x float> %".200", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".202" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".201", <8 x float> %".188", <8 x float> %".177")
  %".203" = add i64 %".175", 1
  br label %"head.3"
end.3:
  %".205" = add i64 %".49", 1
  br label %"head.1"
partial:
  %".212" = inttoptr i64 %".3" to i64*
  %".213" = load i64, i64* %".212"
  %".214" = add i64 %".213", %".29"
  %".215" = add i64 %".214", 0
  %".216" = inttoptr i64 %".215" to <8 x float>*
  store <8 x float> %".50", <8 x float>* %".216", align 4
  %".218" = add i64 %".3", 8
  %".219" = inttoptr i64 %".218" to i64*
  %".220" = load i64, i64* %".219"
  %".221" = add i64 %".220", %".29"
  %".222" = add i64 %".221", 0
  %".223" = inttoptr i64 %".222" to <8 x float>*
  store <8 x float> %".51", <8 x float>* %".223", align 4
  br label %"end.4"
final:
  %".226" = inttoptr i64 %".4" to i64*
  %".227" = load i64, i64* %".226"
  %".228" = add i64 %".227", 0
  %".229" = inttoptr i64 %".228" to <8 x float>*
  %".230" = load <8 x float>, <8 x float>* %".229", align 4
  %".231" = fadd contract <8 x float> %".50", %".230"
  %".232" = fcmp olt <8 x float> %".231", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".233" = select  <8 x i1> %".232", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".231"
  %".234" = fcmp ole <8 x float> %".231", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".235" = select  <8 x i1> %".234", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".231"
  %".236" = inttoptr i64 %".3" to i64*
  %".237" = load i64, i64* %".236"
  %".238" = add i64 %".237", %".29"
  %".239" = add i64 %".238", 0
  %".240" = inttoptr i64 %".239" to <8 x float>*
  store <8 x float> %".235", <8 x float>* %".240", align 4
  %".242" = fadd contract <8 x float> %".51", %".230"
  %".243" = fcmp olt <8 x float> %".242", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".244" = select  <8 x i1> %".243", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".242"
  %".245" = fcmp ole <8 x float> %".242", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".246" = select  <8 x i1> %".245", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".242"
  %".247" = add i64 %".3", 8
  %".248" = inttoptr i64 %".247" to i64*
  %".249" = load i64, i64* %".248"
  %".250" = add i64 %".249", %".29"
  %".251" = add i64 %".250", 0
  %".252" = inttoptr i64 %".251" to <8 x float>*
  store <8 x float> %".246", <8 x float>* %".252", align 4
  br label %"end.4"
end.4:
  %".255" = add i64 %".25", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
