; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3")
{
entry:
  %".5" = add i64 %".2", 32
  %".6" = inttoptr i64 %".5" to i64*
  %".7" = load i64, i64* %".6"
  %".8" = inttoptr i64 %".3" to i64*
  %".9" = load i64, i64* %".8"
  %".10" = add i64 %".3", 8
  %".11" = inttoptr i64 %".10" to i64*
  %".12" = load i64, i64* %".11"
  %".13" = mul i64 %".7", %".12"
  %".14" = sub i64 %".9", %".13"
  %".15" = icmp slt i64 %".12", %".14"
  %".16" = select  i1 %".15", i64 %".12", i64 %".14"
  %".17" = add i64 %".3", 16
  %".18" = inttoptr i64 %".17" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = add i64 %".3", 32
  %".21" = inttoptr i64 %".20" to i64*
  %".22" = load i64, i64* %".21"
  %".23" = add i64 %".3", 40
  %".24" = inttoptr i64 %".23" to i64*
  %".25" = load i64, i64* %".24"
  %".26" = add i64 %".3", 48
  %".27" = inttoptr i64 %".26" to i64*
  %".28" = load i64, i64* %".27"
  %".29" = add i64 %".3", 56
  %".30" = inttoptr i64 %".29" to i64*
  %".31" = load i64, i64* %".30"
  %".32" = inttoptr i64 %".1" to i64*
  %".33" = load i64, i64* %".32"
  %".34" = add i64 %".1", 8
  %".35" = inttoptr i64 %".34" to i64*
  %".36" = load i64, i64* %".35"
  %".37" = add i64 %".3", 64
  %".38" = inttoptr i64 %".37" to i64*
  %".39" = load i64, i64* %".38"
  %".40" = add i64 %".3", 72
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = add i64 %".3", 80
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = mul i64 %".39", 0
  %".47" = mul i64 %".42", 0
  %".48" = add i64 %".36", %".46"
  %".49" = add i64 %".48", %".47"
  %".50" = inttoptr i64 %".49" to <8 x float>*
  %".51" = load <8 x float>, <8 x float>* %".50", align 4
  %".52" = mul i64 %".39", 0
  %".53" = mul i64 %".42", 1
  %".54" = add i64 %".36", %".52"
  %".55" = add i64 %".54", %".53"
  %".56" = inttoptr i64 %".55" to <8 x float>*
  %".57" = load <8 x float>, <8 x float>* %".56", align 4
  %".58" = mul i64 %".39", 0
  %".59" = mul i64 %".42", 2
  %".60" = add i64 %".36", %".58"
  %".61" = add i64 %".60", %".59"
  %".62" = inttoptr i64 %".61" to <8 x float>*
  %".63" = load <8 x float>, <8 x float>* %".62", align 4
  %".64" = add i64 %".1", 16
  %".65" = inttoptr i64 %".64" to i64*
  %".66" = load i64, i64* %".65"
  %".67" = add i64 %".3", 88
  %".68" = inttoptr i64 %".67" to i64*
  %".69" = load i64, i64* %".68"
  %".70" = add i64 %".3", 96
  %".71" = inttoptr i64 %".70" to i64*
  %".72" = load i64, i64* %".71"
  %".73" = add i64 %".1", 24
  %".74" = inttoptr i64 %".73" to i64*
  %".75" = load i64, i64* %".74"
  %".76" = add i64 %".3", 104
  %".77" = inttoptr i64 %".76" to i64*
  %".78" = load i64, i64* %".77"
  %".79" = add i64 %".3", 112
  %".80" = inttoptr i64 %".79" to i64*
  %".81" = load i64, i64* %".80"
  %".82" = add i64 %".75", 0
  %".83" = inttoptr i64 %".82" to <8 x float>*
  %".84" = load <8 x float>, <8 x float>* %".83", align 4
  br label %"head"
head:
  %".86" = phi  i64 [0, %"entry"], [%".197", %"end.2"]
  %".87" = icmp slt i64 %".86", %".16"
  br i1 %".87", label %"body", label %"end"
body:
  %".89" = sdiv i64 %".19", 2
  br label %"head.1"
end:
  ret void
head.1:
  %".91" = phi  i64 [0, %"body"], [%".150", %"body.1"]
  %".92" = icmp slt i64 %".91", %".89"
  br i1 %".92", label %"body.1", label %"end.1"
body.1:
  %".94" = mul i64 %".91", 2
  %".95" = mul i64 %".86", %".22"
  %".96" = mul i64 %".94", %".28"
  %".97" = add i64 %".33", %".95"
  %".98" = add i64 %".97", %".96"
  %".99" = mul i64 %".25", 0
  %".100" = add i64 %".98", %".99"
  %".101" = sdiv i64 %".28", 1
  %".102" = mul i64 %".101", 0
  %".103" = add i64 %".100", %".102"
  %".104" = inttoptr i64 %".103" to <8 x float>*
  %".105" = load <8 x float>, <8 x float>* %".104", align 4
  %".106" = fmul <8 x float> %".105", %".51"
  %".107" = mul i64 %".101", 1
  %".108" = add i64 %".100", %".107"
  %".109" = inttoptr i64 %".108" to <8 x float>*
  %".110" = load <8 x float>, <8 x float>* %".109", align 4
  %".111" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".110", <8 x float> %".57", <8 x float> %".106")
  %".112" = mul i64 %".101", 2
  %".113" = add i64 %".100", %".112"
  %".114" = inttoptr i64 %".113" to <8 x float>*
  %".115" = load <8 x float>, <8 x float>* %".114", align 4
  %".116" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".115", <8 x float> %".63", <8 x float> %".111")
  %".117" = fmul <8 x float> %".110", %".51"
  %".118" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".115", <8 x float> %".57", <8 x float> %".117")
  %".119" = mul i64 %".101", 3
  %".120" = add i64 %".100", %".119"
  %".121" = inttoptr i64 %".120" to <8 x float>*
  %".122" = load <8 x float>, <8 x float>* %".121", align 4
  %".123" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".122", <8 x float> %".63", <8 x float> %".118")
  %".124" = add i64 %".94", 0
  %".125" = fadd contract <8 x float> %".116", %".84"
  %".126" = fcmp olt <8 x float> %".125", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".127" = select  <8 x i1> %".126", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".125"
  %".128" = fcmp ole <8 x float> %".125", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".129" = select  <8 x i1> %".128", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".125"
  %".130" = mul i64 %".86", %".69"
  %".131" = mul i64 %".124", %".72"
  %".132" = add i64 %".66", %".130"
  %".133" = add i64 %".132", %".131"
  %".134" = add i64 %".133", 0
  %".135" = inttoptr i64 %".134" to <8 x float>*
  store <8 x float> %".129", <8 x float>* %".135", align 4
  %".137" = add i64 %".94", 1
  %".138" = fadd contract <8 x float> %".123", %".84"
  %".139" = fcmp olt <8 x float> %".138", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".140" = select  <8 x i1> %".139", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".138"
  %".141" = fcmp ole <8 x float> %".138", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".142" = select  <8 x i1> %".141", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".138"
  %".143" = mul i64 %".86", %".69"
  %".144" = mul i64 %".137", %".72"
  %".145" = add i64 %".66", %".143"
  %".146" = add i64 %".145", %".144"
  %".147" = add i64 %".146", 0
  %".148" = inttoptr i64 %".147" to <8 x float>*
  store <8 x float> %".142", <8 x float>* %".148", align 4
  %".150" = add i64 %".91", 1
  br label %"head.1"
end.1:
  %".152" = sdiv i64 %".19", 2
  %".153" = mul i64 %".152", 2
  %".154" = srem i64 %".19", 2
  br label %"head.2"
head.2:
  %".156" = phi  i64 [0, %"end.1"], [%".195", %"body.2"]
  %".157" = icmp slt i64 %".156", %".154"
  br i1 %".157", label %"body.2", label %"end.2"
body.2:
  %".159" = add i64 %".153", %".156"
  %".160" = mul i64 %".86", %".22"
  %".161" = mul i64 %".159", %".28"
  %".162" = add i64 %".33", %".160"
  %".163" = add i64 %".162", %".161"
  %".164" = mul i64 %".25", 0
  %".165" = add i64 %".163", %".164"
  %".166" = sdiv i64 %".28", 1
  %".167" = mul i64 %".166", 0
  %".168" = add i64 %".165", %".167"
  %".169" = inttoptr i64 %".168" to <8 x float>*
  %".170" = load <8 x float>, <8 x float>* %".169", align 4
  %".171" = fmul <8 x float> %".170", %".51"
  %".172" = mul i64 %".166", 1
  %".173" = add i64 %".165", %".172"
  %".174" = inttoptr i64 %".173" to <8 x float>*
  %".175" = load <8 x float>, <8 x float>* %".174", align 4
  %".176" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".175", <8 x float> %".57", <8 x float> %".171")
  %".177" = mul i64 %".166", 2
  %".178" = add i64 %".165", %".177"
  %".179" = inttoptr i64 %".178" to <8 x float>*
  %".180" = load <8 x float>, <8 x float>* %".179", align 4
  %".181" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".180", <8 x float> %".63", <8 x float> %".176")
  %".182" = add i64 %".159", 0
  %".183" = fadd contract <8 x float> %".181", %".84"
  %".184" = fcmp olt <8 x float> %".183", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".185" = select  <8 x i1> %".184", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".183"
  %".186" = fcmp ole <8 x float> %".183", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".187" = select  <8 x i1> %".186", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".183"
  %".188" = mul i64 %".86", %".69"
  %".189" = mul i64 %".182", %".72"
  %".190" = add i64 %".66", %".188"
  %".191" = add i64 %".190", %".189"
  %".192" = add i64 %".191", 0
  %".193" = inttoptr i64 %".192" to <8 x float>*
  store <8 x float> %".187", <8 x float>* %".193", align 4
  %".195" = add i64 %".156", 1
  br label %"head.2"
end.2:
  %".197" = add i64 %".86", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
