; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10")
{
entry:
  %".12" = icmp ne i64 %".8", 0
  br i1 %".12", label %"go", label %"again"
again:
  %".14" = inttoptr i64 %".3" to i64*
  %".15" = load i64, i64* %".14"
  %".16" = add i64 %".15", 0
  %".17" = inttoptr i64 %".16" to <8 x float>*
  %".18" = load <8 x float>, <8 x float>* %".17", align 4
  %".19" = trunc i64 %".10" to i32
  %".20" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".19", i32 0
  %".21" = shufflevector <8 x i32> %".20", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".22" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".21"
  %".23" = add i64 %".15", 32
  %".24" = inttoptr i64 %".23" to <8 x float>*
  %".25" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".24", i32 4, <8 x i1> %".22", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".27" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"entry"], [%".18", %"again"]
  %".28" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"entry"], [%".25", %"again"]
  %".29" = inttoptr i64 %".1" to i64*
  %".30" = load i64, i64* %".29"
  %".31" = mul i64 %".7", 64
  br label %"head"
head:
  %".33" = phi  i64 [0, %"go"], [%".159", %"end.2"]
  %".34" = phi  <8 x float> [%".27", %"go"], [%".136", %"end.2"]
  %".35" = phi  <8 x float> [%".28", %"go"], [%".137", %"end.2"]
  %".36" = icmp slt i64 %".33", %".6"
  br i1 %".36", label %"body", label %"end"
body:
  %".38" = mul i64 %".33", 8
  %".39" = add i64 %".5", %".38"
  %".40" = inttoptr i64 %".39" to i64*
  %".41" = load i64, i64* %".40"
  %".42" = mul i64 %".33", %".31"
  %".43" = add i64 %".2", %".42"
  %".44" = sdiv i64 %".7", 4
  %".45" = srem i64 %".7", 4
  br label %"head.1"
end:
  %".161" = icmp ne i64 %".9", 0
  br i1 %".161", label %"final", label %"partial"
head.1:
  %".47" = phi  i64 [0, %"body"], [%".128", %"body.1"]
  %".48" = phi  <8 x float> [%".34", %"body"], [%".126", %"body.1"]
  %".49" = phi  <8 x float> [%".35", %"body"], [%".127", %"body.1"]
  %".50" = icmp slt i64 %".47", %".44"
  br i1 %".50", label %"body.1", label %"end.1"
body.1:
  %".52" = mul i64 %".47", 256
  %".53" = add i64 %".43", %".52"
  %".54" = add i64 %".53", 0
  %".55" = mul i64 %".47", 16
  %".56" = add i64 %".41", %".55"
  %".57" = add i64 %".56", 0
  %".58" = add i64 %".54", 0
  %".59" = inttoptr i64 %".58" to <8 x float>*
  %".60" = load <8 x float>, <8 x float>* %".59", align 4
  %".61" = add i64 %".54", 32
  %".62" = inttoptr i64 %".61" to <8 x float>*
  %".63" = load <8 x float>, <8 x float>* %".62", align 4
  %".64" = add i64 %".30", %".57"
  %".65" = inttoptr i64 %".64" to float*
  %".66" = load float, float* %".65"
  %".67" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".66", i32 0
  %".68" = shufflevector <8 x float> %".67", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".69" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".68", <8 x float> %".60", <8 x float> %".48")
  %".70" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".68", <8 x float> %".63", <8 x float> %".49")
  %".71" = mul i64 %".47", 256
  %".72" = add i64 %".43", %".71"
  %".73" = add i64 %".72", 64
  %".74" = mul i64 %".47", 16
  %".75" = add i64 %".41", %".74"
  %".76" = add i64 %".75", 4
  %".77" = add i64 %".73", 0
  %".78" = inttoptr i64 %".77" to <8 x float>*
  %".79" = load <8 x float>, <8 x float>* %".78", align 4
  %".80" = add i64 %".73", 32
  %".81" = inttoptr i64 %".80" to <8 x float>*
  %".82" = load <8 x float>, <8 x float>* %".81", align 4
  %".83" = add i64 %".30", %".76"
  %".84" = inttoptr i64 %".83" to float*
  %".85" = load float, float* %".84"
  %".86" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".85", i32 0
  %".87" = shufflevector <8 x float> %".86", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".88" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".87", <8 x float> %".79", <8 x float> %".69")
  %".89" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".87", <8 x float> %".82", <8 x float> %".70")
  %".90" = mul i64 %".47", 256
  %".91" = add i64 %".43", %".90"
  %".92" = add i64 %".91", 128
  %".93" = mul i64 %".47", 16
  %".94" = add i64 %".41", %".93"
  %".95" = add i64 %".94", 8
  %".96" = add i64 %".92", 0
  %".97" = inttoptr i64 %".96" to <8 x float>*
  %".98" = load <8 x float>, <8 x float>* %".97", align 4
  %".99" = add i64 %".92", 32
  %".100" = inttoptr i64 %".99" to <8 x float>*
  %".101" = load <8 x float>, <8 x float>* %".100", align 4
  %".102" = add i64 %".30", %".95"
  %".103" = inttoptr i64 %".102" to float*
  %".104" = load float, float* %".103"
  %".105" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".104", i32 0
  %".106" = shufflevector <8 x float> %".105", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".107" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".106", <8 x float> %".98", <8 x float> %".88")
  %".108" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".106", <8 x float> %".101", <8 x float> %".89")
  %".109" = mul i64 %".47", 256
  %".110" = add i64 %".43", %".109"
  %".111" = add i64 %".110", 192
  %".112" = mul i64 %".47", 16
  %".113" = add i64 %".41", %".112"
  %".114" = add i64 %".113", 12
  %".115" = add i64 %".111", 0
  %".116" = inttoptr i64 %".115" to <8 x float>*
  %".117" = load <8 x float>, <8 x float>* %".116", align 4
  %".118" = add i64 %".111", 32
  %".119" = inttoptr i64 %".118" to <8 x float>*
  %".120" = load <8 x float>, <8 x float>* %".119", align 4
  %".121" = add i64 %".30", %".114"
  %".122" = inttoptr i64 %".121" to float*
  %".123" = load float, float* %".122"
  %".124" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".123", i32 0
  %".125" = shufflevector <8 x float> %".124", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".126" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".125", <8 x float> %".117", <8 x float> %".107")
  %".127" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".125", <8 x float> %".120", <8 x float> %".108")
  %".128" = add i64 %".47", 1
  br label %"head.1"
end.1:
  %".130" = mul i64 %".44", 256
  %".131" = add i64 %".43", %".130"
  %".132" = mul i64 %".44", 16
  %".133" = add i64 %".41", %".132"
  br label %"head.2"
head.2:
  %".135" = phi  i64 [0, %"end.1"], [%".157", %"body.2"]
  %".136" = phi  <8 x float> [%".48", %"end.1"], [%".155", %"body.2"]
  %".137" = phi  <8 x float> [%".49", %"end.1"], [%".156", %"body.2"]
  %".138" = icmp slt i64 %".135", %".45"
  br i1 %".138", label %"body.2", label %"end.2"
body.2:
  %".140" = mul i64 %".135", 64
  %".141" = add i64 %".131", %".140"
  %".142" = mul i64 %".135", 4
  %".143" = add i64 %".133", %".142"
  %".144" = add i64 %".141", 0
  %".145" = inttoptr i64 %".144" to <8 x float>*
  %".146" = load <8 x float>, <8 x float>* %".145", align 4
  %".147" = add i64 %".141", 32
  %".148" = inttoptr i64 %".147" to <8 x float>*
  %".149" = load <8 x float>, <8 x float>* %".148", align 4
  %".150" = add i64 %".30", %".143"
  %".151" = inttoptr i64 %".150" to float*
  %".152" = load float, float* %".151"
  %".153" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".152", i32 0
  %".154" = shufflevector <8 x float> %".153", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".146", <8 x float> %".136")
  %".156" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".149", <8 x float> %".137")
  %".157" = add i64 %".135", 1
  br label %"head.2"
end.2:
  %".159" = add i64 %".33", 1
  br label %"head"
partial:
  %".163" = inttoptr i64 %".3" to i64*
  %".164" = load i64, i64* %".163"
  %".165" = add i64 %".164", 0
  %".166" = inttoptr i64 %".165" to <8 x float>*
  store <8 x float> %".34", <8 x float>* %".166", align 4
  %".168" = trunc i64 %".10" to i32
  %".169" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".168", i32 0
  %".170" = shufflevector <8 x i32> %".169", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".171" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".170"
  %".172" = inttoptr i64 %".3" to i64*
  %".173" = load i64, i64* %".172"
  %".174" = add i64 %".173", 32
  %".175" = inttoptr i64 %".174" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".35", <8 x float>* %".175", i32 4, <8 x i1> %".171")
  br label %"end.3"
final:
  %".178" = inttoptr i64 %".3" to i64*
  %".179" = load i64, i64* %".178"
  %".180" = add i64 %".179", 0
  %".181" = inttoptr i64 %".180" to <8 x float>*
  store <8 x float> %".34", <8 x float>* %".181", align 4
  %".183" = trunc i64 %".10" to i32
  %".184" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".183", i32 0
  %".185" = shufflevector <8 x i32> %".184", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".186" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".185"
  %".187" = inttoptr i64 %".3" to i64*
  %".188" = load i64, i64* %".187"
  %".189" = add i64 %".188", 32
  %".190" = inttoptr i64 %".189" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".35", <8 x float>* %".190", i32 4, <8 x i1> %".186")
  br label %"end.3"
end.3:
  ret void
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")

declare void @"llvm.masked.store.v8f32.p0"(<8 x float> %".1", <8 x float>* %".2", i32 %".3", <8 x i1> %".4")
