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
  %".82" = inttoptr i64 %".75" to <8 x float>*
  %".83" = load <8 x float>, <8 x float>* %".82", align 4
  br label %"head"
head:
  %".85" = phi  i64 [0, %"entry"], [%".193", %"end.2"]
  %".86" = icmp slt i64 %".85", %".16"
  br i1 %".86", label %"body", label %"end"
body:
  %".88" = sdiv i64 %".19", 2
  br label %"head.1"
end:
  ret void
head.1:
  %".90" = phi  i64 [0, %"body"], [%".147", %"body.1"]
  %".91" = icmp slt i64 %".90", %".88"
  br i1 %".91", label %"body.1", label %"end.1"
body.1:
  %".93" = mul i64 %".90", 2
  %".94" = mul i64 %".85", %".22"
  %".95" = mul i64 %".93", %".28"
  %".96" = add i64 %".33", %".94"
  %".97" = add i64 %".96", %".95"
  %".98" = mul i64 %".25", 0
  %".99" = add i64 %".97", %".98"
  %".100" = sdiv i64 %".28", 1
  %".101" = mul i64 %".100", 0
  %".102" = add i64 %".99", %".101"
  %".103" = inttoptr i64 %".102" to <8 x float>*
  %".104" = load <8 x float>, <8 x float>* %".103", align 4
  %".105" = fmul <8 x float> %".104", %".51"
  %".106" = mul i64 %".100", 1
  %".107" = add i64 %".99", %".106"
  %".108" = inttoptr i64 %".107" to <8 x float>*
  %".109" = load <8 x float>, <8 x float>* %".108", align 4
  %".110" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".109", <8 x float> %".57", <8 x float> %".105")
  %".111" = mul i64 %".100", 2
  %".112" = add i64 %".99", %".111"
  %".113" = inttoptr i64 %".112" to <8 x float>*
  %".114" = load <8 x float>, <8 x float>* %".113", align 4
  %".115" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".114", <8 x float> %".63", <8 x float> %".110")
  %".116" = fmul <8 x float> %".109", %".51"
  %".117" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".114", <8 x float> %".57", <8 x float> %".116")
  %".118" = mul i64 %".100", 3
  %".119" = add i64 %".99", %".118"
  %".120" = inttoptr i64 %".119" to <8 x float>*
  %".121" = load <8 x float>, <8 x float>* %".120", align 4
  %".122" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".121", <8 x float> %".63", <8 x float> %".117")
  %".123" = add i64 %".93", 0
  %".124" = fadd contract <8 x float> %".115", %".83"
  %".125" = fcmp olt <8 x float> %".124", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".126" = select  <8 x i1> %".125", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".124"
  %".127" = fcmp ole <8 x float> %".124", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".128" = select  <8 x i1> %".127", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".124"
  %".129" = mul i64 %".85", %".69"
  %".130" = mul i64 %".123", %".72"
  %".131" = add i64 %".66", %".129"
  %".132" = add i64 %".131", %".130"
  %".133" = inttoptr i64 %".132" to <8 x float>*
  store <8 x float> %".128", <8 x float>* %".133", align 4
  %".135" = add i64 %".93", 1
  %".136" = fadd contract <8 x float> %".122", %".83"
  %".137" = fcmp olt <8 x float> %".136", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".138" = select  <8 x i1> %".137", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".136"
  %".139" = fcmp ole <8 x float> %".136", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".140" = select  <8 x i1> %".139", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".136"
  %".141" = mul i64 %".85", %".69"
  %".142" = mul i64 %".135", %".72"
  %".143" = add i64 %".66", %".141"
  %".144" = add i64 %".143", %".142"
  %".145" = inttoptr i64 %".144" to <8 x float>*
  store <8 x float> %".140", <8 x float>* %".145", align 4
  %".147" = add i64 %".90", 1
  br label %"head.1"
end.1:
  %".149" = sdiv i64 %".19", 2
  %".150" = mul i64 %".149", 2
  %".151" = srem i64 %".19", 2
  br label %"head.2"
head.2:
  %".153" = phi  i64 [0, %"end.1"], [%".191", %"body.2"]
  %".154" = icmp slt i64 %".153", %".151"
  br i1 %".154", label %"body.2", label %"end.2"
body.2:
  %".156" = add i64 %".150", %".153"
  %".157" = mul i64 %".85", %".22"
  %".158" = mul i64 %".156", %".28"
  %".159" = add i64 %".33", %".157"
  %".160" = add i64 %".159", %".158"
  %".161" = mul i64 %".25", 0
  %".162" = add i64 %".160", %".161"
  %".163" = sdiv i64 %".28", 1
  %".164" = mul i64 %".163", 0
  %".165" = add i64 %".162", %".164"
  %".166" = inttoptr i64 %".165" to <8 x float>*
  %".167" = load <8 x float>, <8 x float>* %".166", align 4
  %".168" = fmul <8 x float> %".167", %".51"
  %".169" = mul i64 %".163", 1
  %".170" = add i64 %".162", %".169"
  %".171" = inttoptr i64 %".170" to <8 x float>*
  %".172" = load <8 x float>, <8 x float>* %".171", align 4
  %".173" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".172", <8 x float> %".57", <8 x float> %".168")
  %".174" = mul i64 %".163", 2
  %".175" = add i64 %".162", %".174"
  %".176" = inttoptr i64 %".175" to <8 x float>*
  %".177" = load <8 x float>, <8 x float>* %".176", align 4
  %".178" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".177", <8 x float> %".63", <8 x float> %".173")
  %".179" = add i64 %".156", 0
  %".180" = fadd contract <8 x float> %".178", %".83"
  %".181" = fcmp olt <8 x float> %".180", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".182" = select  <8 x i1> %".181", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".180"
  %".183" = fcmp ole <8 x float> %".180", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".184" = select  <8 x i1> %".183", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".180"
  %".185" = mul i64 %".85", %".69"
  %".186" = mul i64 %".179", %".72"
  %".187" = add i64 %".66", %".185"
  %".188" = add i64 %".187", %".186"
  %".189" = inttoptr i64 %".188" to <8 x float>*
  store <8 x float> %".184", <8 x float>* %".189", align 4
  %".191" = add i64 %".153", 1
  br label %"head.2"
end.2:
  %".193" = add i64 %".85", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
