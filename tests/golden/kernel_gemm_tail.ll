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
  %".22" = phi  i64 [0, %"entry"], [%".225", %"end.4"]
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
  %".35" = trunc i64 %".10" to i32
  %".36" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".35", i32 0
  %".37" = shufflevector <8 x i32> %".36", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".38" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".37"
  %".39" = add i64 %".31", 32
  %".40" = inttoptr i64 %".39" to <8 x float>*
  %".41" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".40", i32 4, <8 x i1> %".38", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".43" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".34", %"again"]
  %".44" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".41", %"again"]
  br label %"head.1"
head.1:
  %".46" = phi  i64 [0, %"go"], [%".187", %"end.3"]
  %".47" = phi  <8 x float> [%".43", %"go"], [%".161", %"end.3"]
  %".48" = phi  <8 x float> [%".44", %"go"], [%".162", %"end.3"]
  %".49" = icmp slt i64 %".46", %".6"
  br i1 %".49", label %"body.1", label %"end.1"
body.1:
  %".51" = mul i64 %".46", 8
  %".52" = add i64 %".5", %".51"
  %".53" = inttoptr i64 %".52" to i64*
  %".54" = load i64, i64* %".53"
  %".55" = add i64 %".54", %".25"
  %".56" = mul i64 %".46", %".20"
  %".57" = add i64 %".2", %".56"
  %".58" = sdiv i64 %".7", 4
  %".59" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".189" = icmp ne i64 %".9", 0
  br i1 %".189", label %"final", label %"partial"
head.2:
  %".61" = phi  i64 [0, %"body.1"], [%".150", %"body.2"]
  %".62" = phi  <8 x float> [%".47", %"body.1"], [%".148", %"body.2"]
  %".63" = phi  <8 x float> [%".48", %"body.1"], [%".149", %"body.2"]
  %".64" = icmp slt i64 %".61", %".58"
  br i1 %".64", label %"body.2", label %"end.2"
body.2:
  %".66" = mul i64 %".61", 4
  %".67" = mul i64 %".66", 64
  %".68" = add i64 %".57", %".67"
  %".69" = add i64 %".68", 0
  %".70" = mul i64 %".66", 4
  %".71" = add i64 %".55", %".70"
  %".72" = add i64 %".71", 0
  %".73" = add i64 %".69", 0
  %".74" = inttoptr i64 %".73" to <8 x float>*
  %".75" = load <8 x float>, <8 x float>* %".74", align 4
  %".76" = add i64 %".69", 32
  %".77" = inttoptr i64 %".76" to <8 x float>*
  %".78" = load <8 x float>, <8 x float>* %".77", align 4
  %".79" = add i64 %".19", %".72"
  %".80" = add i64 %".79", 0
  %".81" = inttoptr i64 %".80" to float*
  %".82" = load float, float* %".81"
  %".83" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".82", i32 0
  %".84" = shufflevector <8 x float> %".83", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".85" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".84", <8 x float> %".75", <8 x float> %".62")
  %".86" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".84", <8 x float> %".78", <8 x float> %".63")
  %".87" = mul i64 %".61", 4
  %".88" = mul i64 %".87", 64
  %".89" = add i64 %".57", %".88"
  %".90" = add i64 %".89", 64
  %".91" = mul i64 %".87", 4
  %".92" = add i64 %".55", %".91"
  %".93" = add i64 %".92", 4
  %".94" = add i64 %".90", 0
  %".95" = inttoptr i64 %".94" to <8 x float>*
  %".96" = load <8 x float>, <8 x float>* %".95", align 4
  %".97" = add i64 %".90", 32
  %".98" = inttoptr i64 %".97" to <8 x float>*
  %".99" = load <8 x float>, <8 x float>* %".98", align 4
  %".100" = add i64 %".19", %".93"
  %".101" = add i64 %".100", 0
  %".102" = inttoptr i64 %".101" to float*
  %".103" = load float, float* %".102"
  %".104" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".103", i32 0
  %".105" = shufflevector <8 x float> %".104", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".106" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".105", <8 x float> %".96", <8 x float> %".85")
  %".107" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".105", <8 x float> %".99", <8 x float> %".86")
  %".108" = mul i64 %".61", 4
  %".109" = mul i64 %".108", 64
  %".110" = add i64 %".57", %".109"
  %".111" = add i64 %".110", 128
  %".112" = mul i64 %".108", 4
  %".113" = add i64 %".55", %".112"
  %".114" = add i64 %".113", 8
  %".115" = add i64 %".111", 0
  %".116" = inttoptr i64 %".115" to <8 x float>*
  %".117" = load <8 x float>, <8 x float>* %".116", align 4
  %".118" = add i64 %".111", 32
  %".119" = inttoptr i64 %".118" to <8 x float>*
  %".120" = load <8 x float>, <8 x float>* %".119", align 4
  %".121" = add i64 %".19", %".114"
  %".122" = add i64 %".121", 0
  %".123" = inttoptr i64 %".122" to float*
  %".124" = load float, float* %".123"
  %".125" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".124", i32 0
  %".126" = shufflevector <8 x float> %".125", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".127" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".126", <8 x float> %".117", <8 x float> %".106")
  %".128" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".126", <8 x float> %".120", <8 x float> %".107")
  %".129" = mul i64 %".61", 4
  %".130" = mul i64 %".129", 64
  %".131" = add i64 %".57", %".130"
  %".132" = add i64 %".131", 192
  %".133" = mul i64 %".129", 4
  %".134" = add i64 %".55", %".133"
  %".135" = add i64 %".134", 12
  %".136" = add i64 %".132", 0
  %".137" = inttoptr i64 %".136" to <8 x float>*
  %".138" = load <8 x float>, <8 x float>* %".137", align 4
  %".139" = add i64 %".132", 32
  %".140" = inttoptr i64 %".139" to <8 x float>*
  %".141" = load <8 x float>, <8 x float>* %".140", align 4
  %".142" = add i64 %".19", %".135"
  %".143" = add i64 %".142", 0
  %".144" = inttoptr i64 %".143" to float*
  %".145" = load float, float* %".144"
  %".146" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".145", i32 0
  %".147" = shufflevector <8 x float> %".146", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".148" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".147", <8 x float> %".138", <8 x float> %".127")
  %".149" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".147", <8 x float> %".141", <8 x float> %".128")
  %".150" = add i64 %".61", 1
  br label %"head.2"
end.2:
  %".152" = mul i64 %".58", 4
  %".153" = mul i64 %".152", 64
  %".154" = add i64 %".57", %".153"
  %".155" = add i64 %".154", 0
  %".156" = mul i64 %".152", 4
  %".157" = add i64 %".55", %".156"
  %".158" = add i64 %".157", 0
  br label %"head.3"
head.3:
  %".160" = phi  i64 [0, %"end.2"], [%".185", %"body.3"]
  %".161" = phi  <8 x float> [%".62", %"end.2"], [%".183", %"body.3"]
  %".162" = phi  <8 x float> [%".63", %"end.2"], [%".184", %"body.3"]
  %".163" = icmp slt i64 %".160", %".59"
  br i1 %".163", label %"body.3", label %"end.3"
body.3:
  %".165" = mul i64 %".160", 64
  %".166" = add i64 %".155", %".165"
  %".167" = add i64 %".166", 0
  %".168" = mul i64 %".160", 4
  %".169" = add i64 %".158", %".168"
  %".170" = add i64 %".169", 0
  %".171" = add i64 %".167", 0
  %".172" = inttoptr i64 %".171" to <8 x float>*
  %".173" = load <8 x float>, <8 x float>* %".172", align 4
  %".174" = add i64 %".167", 32
  %".175" = inttoptr i64 %".174" to <8 x float>*
  %".176" = load <8 x float>, <8 x float>* %".175", align 4
  %".177" = add i64 %".19", %".170"
  %".178" = add i64 %".177", 0
  %".179" = inttoptr i64 %".178" to float*
  %".180" = load float, float* %".179"
  %".181" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".180", i32 0
  %".182" = shufflevector <8 x float> %".181", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".183" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".182", <8 x float> %".173", <8 x float> %".161")
  %".184" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".182", <8 x float> %".176", <8 x float> %".162")
  %".185" = add i64 %".160", 1
  br label %"head.3"
end.3:
  %".187" = add i64 %".46", 1
  br label %"head.1"
partial:
  %".191" = inttoptr i64 %".3" to i64*
  %".192" = load i64, i64* %".191"
  %".193" = add i64 %".192", %".26"
  %".194" = add i64 %".193", 0
  %".195" = inttoptr i64 %".194" to <8 x float>*
  store <8 x float> %".47", <8 x float>* %".195", align 4
  %".197" = trunc i64 %".10" to i32
  %".198" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".197", i32 0
  %".199" = shufflevector <8 x i32> %".198", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".200" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".199"
  %".201" = inttoptr i64 %".3" to i64*
  %".202" = load i64, i64* %".201"
  %".203" = add i64 %".202", %".26"
  %".204" = add i64 %".203", 32
  %".205" = inttoptr i64 %".204" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".48", <8 x float>* %".205", i32 4, <8 x i1> %".200")
  br label %"end.4"
final:
  %".208" = inttoptr i64 %".3" to i64*
  %".209" = load i64, i64* %".208"
  %".210" = add i64 %".209", %".26"
  %".211" = add i64 %".210", 0
  %".212" = inttoptr i64 %".211" to <8 x float>*
  store <8 x float> %".47", <8 x float>* %".212", align 4
  %".214" = trunc i64 %".10" to i32
  %".215" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".214", i32 0
  %".216" = shufflevector <8 x i32> %".215", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".217" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".216"
  %".218" = inttoptr i64 %".3" to i64*
  %".219" = load i64, i64* %".218"
  %".220" = add i64 %".219", %".26"
  %".221" = add i64 %".220", 32
  %".222" = inttoptr i64 %".221" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".48", <8 x float>* %".222", i32 4, <8 x i1> %".217")
  br label %"end.4"
end.4:
  %".225" = add i64 %".22", 1
  br label %"head"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")

declare void @"llvm.masked.store.v8f32.p0"(<8 x float> %".1", <8 x float>* %".2", i32 %".3", <8 x i1> %".4")
