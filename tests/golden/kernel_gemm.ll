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
  %".19" = add i64 %".3", 8
  %".20" = inttoptr i64 %".19" to i64*
  %".21" = load i64, i64* %".20"
  %".22" = add i64 %".21", 0
  %".23" = inttoptr i64 %".22" to <8 x float>*
  %".24" = load <8 x float>, <8 x float>* %".23", align 4
  br label %"go"
go:
  %".26" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"entry"], [%".18", %"again"]
  %".27" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"entry"], [%".24", %"again"]
  %".28" = inttoptr i64 %".1" to i64*
  %".29" = load i64, i64* %".28"
  %".30" = add i64 %".1", 8
  %".31" = inttoptr i64 %".30" to i64*
  %".32" = load i64, i64* %".31"
  %".33" = mul i64 %".7", 32
  br label %"head"
head:
  %".35" = phi  i64 [0, %"go"], [%".171", %"end.2"]
  %".36" = phi  <8 x float> [%".26", %"go"], [%".146", %"end.2"]
  %".37" = phi  <8 x float> [%".27", %"go"], [%".147", %"end.2"]
  %".38" = icmp slt i64 %".35", %".6"
  br i1 %".38", label %"body", label %"end"
body:
  %".40" = mul i64 %".35", 8
  %".41" = add i64 %".5", %".40"
  %".42" = inttoptr i64 %".41" to i64*
  %".43" = load i64, i64* %".42"
  %".44" = mul i64 %".35", %".33"
  %".45" = add i64 %".2", %".44"
  %".46" = sdiv i64 %".7", 4
  %".47" = srem i64 %".7", 4
  br label %"head.1"
end:
  %".173" = icmp ne i64 %".9", 0
  br i1 %".173", label %"final", label %"partial"
head.1:
  %".49" = phi  i64 [0, %"body"], [%".138", %"body.1"]
  %".50" = phi  <8 x float> [%".36", %"body"], [%".131", %"body.1"]
  %".51" = phi  <8 x float> [%".37", %"body"], [%".137", %"body.1"]
  %".52" = icmp slt i64 %".49", %".46"
  br i1 %".52", label %"body.1", label %"end.1"
body.1:
  %".54" = mul i64 %".49", 128
  %".55" = add i64 %".45", %".54"
  %".56" = add i64 %".55", 0
  %".57" = mul i64 %".49", 16
  %".58" = add i64 %".43", %".57"
  %".59" = add i64 %".58", 0
  %".60" = add i64 %".56", 0
  %".61" = inttoptr i64 %".60" to <8 x float>*
  %".62" = load <8 x float>, <8 x float>* %".61", align 4
  %".63" = add i64 %".29", %".59"
  %".64" = inttoptr i64 %".63" to float*
  %".65" = load float, float* %".64"
  %".66" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".65", i32 0
  %".67" = shufflevector <8 x float> %".66", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".68" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".67", <8 x float> %".62", <8 x float> %".50")
  %".69" = add i64 %".32", %".59"
  %".70" = inttoptr i64 %".69" to float*
  %".71" = load float, float* %".70"
  %".72" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".71", i32 0
  %".73" = shufflevector <8 x float> %".72", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".74" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".73", <8 x float> %".62", <8 x float> %".51")
  %".75" = mul i64 %".49", 128
  %".76" = add i64 %".45", %".75"
  %".77" = add i64 %".76", 32
  %".78" = mul i64 %".49", 16
  %".79" = add i64 %".43", %".78"
  %".80" = add i64 %".79", 4
  %".81" = add i64 %".77", 0
  %".82" = inttoptr i64 %".81" to <8 x float>*
  %".83" = load <8 x float>, <8 x float>* %".82", align 4
  %".84" = add i64 %".29", %".80"
  %".85" = inttoptr i64 %".84" to float*
  %".86" = load float, float* %".85"
  %".87" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".86", i32 0
  %".88" = shufflevector <8 x float> %".87", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".89" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".88", <8 x float> %".83", <8 x float> %".68")
  %".90" = add i64 %".32", %".80"
  %".91" = inttoptr i64 %".90" to float*
  %".92" = load float, float* %".91"
  %".93" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".92", i32 0
  %".94" = shufflevector <8 x float> %".93", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".95" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".94", <8 x float> %".83", <8 x float> %".74")
  %".96" = mul i64 %".49", 128
  %".97" = add i64 %".45", %".96"
  %".98" = add i64 %".97", 64
  %".99" = mul i64 %".49", 16
  %".100" = add i64 %".43", %".99"
  %".101" = add i64 %".100", 8
  %".102" = add i64 %".98", 0
  %".103" = inttoptr i64 %".102" to <8 x float>*
  %".104" = load <8 x float>, <8 x float>* %".103", align 4
  %".105" = add i64 %".29", %".101"
  %".106" = inttoptr i64 %".105" to float*
  %".107" = load float, float* %".106"
  %".108" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".107", i32 0
  %".109" = shufflevector <8 x float> %".108", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".110" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".109", <8 x float> %".104", <8 x float> %".89")
  %".111" = add i64 %".32", %".101"
  %".112" = inttoptr i64 %".111" to float*
  %".113" = load float, float* %".112"
  %".114" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".113", i32 0
  %".115" = shufflevector <8 x float> %".114", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".116" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".115", <8 x float> %".104", <8 x float> %".95")
  %".117" = mul i64 %".49", 128
  %".118" = add i64 %".45", %".117"
  %".119" = add i64 %".118", 96
  %".120" = mul i64 %".49", 16
  %".121" = add i64 %".43", %".120"
  %".122" = add i64 %".121", 12
  %".123" = add i64 %".119", 0
  %".124" = inttoptr i64 %".123" to <8 x float>*
  %".125" = load <8 x float>, <8 x float>* %".124", align 4
  %".126" = add i64 %".29", %".122"
  %".127" = inttoptr i64 %".126" to float*
  %".128" = load float, float* %".127"
  %".129" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".128", i32 0
  %".130" = shufflevector <8 x float> %".129", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".131" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".130", <8 x float> %".125", <8 x float> %".110")
  %".132" = add i64 %".32", %".122"
  %".133" = inttoptr i64 %".132" to float*
  %".134" = load float, float* %".133"
  %".135" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".134", i32 0
  %".136" = shufflevector <8 x float> %".135", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".137" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".136", <8 x float> %".125", <8 x float> %".116")
  %".138" = add i64 %".49", 1
  br label %"head.1"
end.1:
  %".140" = mul i64 %".46", 128
  %".141" = add i64 %".45", %".140"
  %".142" = mul i64 %".46", 16
  %".143" = add i64 %".43", %".142"
  br label %"head.2"
head.2:
  %".145" = phi  i64 [0, %"end.1"], [%".169", %"body.2"]
  %".146" = phi  <8 x float> [%".50", %"end.1"], [%".162", %"body.2"]
  %".147" = phi  <8 x float> [%".51", %"end.1"], [%".168", %"body.2"]
  %".148" = icmp slt i64 %".145", %".47"
  br i1 %".148", label %"body.2", label %"end.2"
body.2:
  %".150" = mul i64 %".145", 32
  %".151" = add i64 %".141", %".150"
  %".152" = mul i64 %".145", 4
  %".153" = add i64 %".143", %".152"
  %".154" = add i64 %".151", 0
  %".155" = inttoptr i64 %".154" to <8 x float>*
  %".156" = load <8 x float>, <8 x float>* %".155", align 4
  %".157" = add i64 %".29", %".153"
  %".158" = inttoptr i64 %".157" to float*
  %".159" = load float, float* %".158"
  %".160" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".159", i32 0
  %".161" = shufflevector <8 x float> %".160", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".162" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".161", <8 x float> %".156", <8 x float> %".146")
  %".163" = add i64 %".32", %".153"
  %".164" = inttoptr i64 %".163" to float*
  %".165" = load float, float* %".164"
  %".166" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".165", i32 0
  %".167" = shufflevector <8 x float> %".166", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".168" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".167", <8 x float> %".156", <8 x float> %".147")
  %".169" = add i64 %".145", 1
  br label %"head.2"
end.2:
  %".171" = add i64 %".35", 1
  br label %"head"
partial:
  %".175" = inttoptr i64 %".3" to i64*
  %".176" = load i64, i64* %".175"
  %".177" = add i64 %".176", 0
  %".178" = inttoptr i64 %".177" to <8 x float>*
  store <8 x float> %".36", <8 x float>* %".178", align 4
  %".180" = add i64 %".3", 8
  %".181" = inttoptr i64 %".180" to i64*
  %".182" = load i64, i64* %".181"
  %".183" = add i64 %".182", 0
  %".184" = inttoptr i64 %".183" to <8 x float>*
  store <8 x float> %".37", <8 x float>* %".184", align 4
  br label %"end.3"
final:
  %".187" = inttoptr i64 %".4" to i64*
  %".188" = load i64, i64* %".187"
  %".189" = add i64 %".188", 0
  %".190" = inttoptr i64 %".189" to <8 x float>*
  %".191" = load <8 x float>, <8 x float>* %".190", align 4
  %".192" = fadd <8 x float> %".36", %".191"
  %".193" = fcmp olt <8 x float> %".192", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".194" = select  <8 x i1> %".193", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".192"
  %".195" = inttoptr i64 %".3" to i64*
  %".196" = load i64, i64* %".195"
  %".197" = add i64 %".196", 0
  %".198" = inttoptr i64 %".197" to <8 x float>*
  store <8 x float> %".194", <8 x float>* %".198", align 4
  %".200" = fadd <8 x float> %".37", %".191"
  %".201" = fcmp olt <8 x float> %".200", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".202" = select  <8 x i1> %".201", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".200"
  %".203" = add i64 %".3", 8
  %".204" = inttoptr i64 %".203" to i64*
  %".205" = load i64, i64* %".204"
  %".206" = add i64 %".205", 0
  %".207" = inttoptr i64 %".206" to <8 x float>*
  store <8 x float> %".202", <8 x float>* %".207", align 4
  br label %"end.3"
end.3:
  ret void
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
