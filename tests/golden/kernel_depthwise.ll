; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3")
{
entry:
  %".5" = inttoptr i64 %".3" to i64*
  %".6" = load i64, i64* %".5"
  %".7" = add i64 %".3", 8
  %".8" = inttoptr i64 %".7" to i64*
  %".9" = load i64, i64* %".8"
  %".10" = add i64 %".3", 16
  %".11" = inttoptr i64 %".10" to i64*
  %".12" = load i64, i64* %".11"
  %".13" = add i64 %".2", 32
  %".14" = inttoptr i64 %".13" to i64*
  %".15" = load i64, i64* %".14"
  %".16" = mul i64 %".15", %".9"
  %".17" = sub i64 %".6", %".16"
  %".18" = icmp slt i64 %".9", %".17"
  %".19" = select  i1 %".18", i64 %".9", i64 %".17"
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
  %".32" = add i64 %".3", 64
  %".33" = inttoptr i64 %".32" to i64*
  %".34" = load i64, i64* %".33"
  %".35" = add i64 %".3", 72
  %".36" = inttoptr i64 %".35" to i64*
  %".37" = load i64, i64* %".36"
  %".38" = inttoptr i64 %".1" to i64*
  %".39" = load i64, i64* %".38"
  %".40" = add i64 %".1", 8
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = add i64 %".1", 16
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = add i64 %".42", 0
  %".47" = inttoptr i64 %".46" to <8 x float>*
  %".48" = load <8 x float>, <8 x float>* %".47", align 4
  %".49" = add i64 %".42", 32
  %".50" = inttoptr i64 %".49" to <8 x float>*
  %".51" = load <8 x float>, <8 x float>* %".50", align 4
  %".52" = add i64 %".42", 64
  %".53" = inttoptr i64 %".52" to <8 x float>*
  %".54" = load <8 x float>, <8 x float>* %".53", align 4
  %".55" = sdiv i64 %".28", 1
  %".56" = add i64 %".1", 24
  %".57" = inttoptr i64 %".56" to i64*
  %".58" = load i64, i64* %".57"
  %".59" = inttoptr i64 %".58" to <8 x float>*
  %".60" = load <8 x float>, <8 x float>* %".59", align 4
  br label %"head"
head:
  %".62" = phi  i64 [0, %"entry"], [%".168", %"end.2"]
  %".63" = icmp slt i64 %".62", %".19"
  br i1 %".63", label %"body", label %"end"
body:
  %".65" = sdiv i64 %".12", 2
  br label %"head.1"
end:
  ret void
head.1:
  %".67" = phi  i64 [0, %"body"], [%".123", %"body.1"]
  %".68" = icmp slt i64 %".67", %".65"
  br i1 %".68", label %"body.1", label %"end.1"
body.1:
  %".70" = mul i64 %".67", 2
  %".71" = mul i64 %".62", %".22"
  %".72" = mul i64 %".70", %".28"
  %".73" = add i64 %".39", %".71"
  %".74" = add i64 %".73", %".72"
  %".75" = mul i64 %".25", 0
  %".76" = add i64 %".74", %".75"
  %".77" = mul i64 %".55", 0
  %".78" = add i64 %".76", %".77"
  %".79" = inttoptr i64 %".78" to <8 x float>*
  %".80" = load <8 x float>, <8 x float>* %".79", align 4
  %".81" = fmul <8 x float> %".80", %".48"
  %".82" = mul i64 %".55", 1
  %".83" = add i64 %".76", %".82"
  %".84" = inttoptr i64 %".83" to <8 x float>*
  %".85" = load <8 x float>, <8 x float>* %".84", align 4
  %".86" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".85", <8 x float> %".51", <8 x float> %".81")
  %".87" = mul i64 %".55", 2
  %".88" = add i64 %".76", %".87"
  %".89" = inttoptr i64 %".88" to <8 x float>*
  %".90" = load <8 x float>, <8 x float>* %".89", align 4
  %".91" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".90", <8 x float> %".54", <8 x float> %".86")
  %".92" = fmul <8 x float> %".85", %".48"
  %".93" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".90", <8 x float> %".51", <8 x float> %".92")
  %".94" = mul i64 %".55", 3
  %".95" = add i64 %".76", %".94"
  %".96" = inttoptr i64 %".95" to <8 x float>*
  %".97" = load <8 x float>, <8 x float>* %".96", align 4
  %".98" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".97", <8 x float> %".54", <8 x float> %".93")
  %".99" = fadd contract <8 x float> %".91", %".60"
  %".100" = fcmp olt <8 x float> %".99", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".101" = select  <8 x i1> %".100", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".99"
  %".102" = fcmp ole <8 x float> %".99", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".103" = select  <8 x i1> %".102", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".99"
  %".104" = mul i64 %".62", %".34"
  %".105" = add i64 %".70", 0
  %".106" = mul i64 %".105", %".37"
  %".107" = add i64 %".45", %".104"
  %".108" = add i64 %".107", %".106"
  %".109" = inttoptr i64 %".108" to <8 x float>*
  store <8 x float> %".103", <8 x float>* %".109", align 4
  %".111" = fadd contract <8 x float> %".98", %".60"
  %".112" = fcmp olt <8 x float> %".111", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".113" = select  <8 x i1> %".112", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".111"
  %".114" = fcmp ole <8 x float> %".111", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".115" = select  <8 x i1> %".114", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".111"
  %".116" = mul i64 %".62", %".34"
  %".117" = add i64 %".70", 1
  %".118" = mul i64 %".117", %".37"
  %".119" = add i64 %".45", %".116"
  %".120" = add i64 %".119", %".118"
  %".121" = inttoptr i64 %".120" to <8 x float>*
  store <8 x float> %".115", <8 x float>* %".121", align 4
  %".123" = add i64 %".67", 1
  br label %"head.1"
end.1:
  %".125" = sdiv i64 %".12", 2
  %".126" = mul i64 %".125", 2
  %".127" = srem i64 %".12", 2
  br label %"head.2"
head.2:
  %".129" = phi  i64 [0, %"end.1"], [%".166", %"body.2"]
  %".130" = icmp slt i64 %".129", %".127"
  br i1 %".130", label %"body.2", label %"end.2"
body.2:
  %".132" = add i64 %".126", %".129"
  %".133" = mul i64 %".62", %".22"
  %".134" = mul i64 %".132", %".28"
  %".135" = add i64 %".39", %".133"
  %".136" = add i64 %".135", %".134"
  %".137" = mul i64 %".25", 0
  %".138" = add i64 %".136", %".137"
  %".139" = mul i64 %".55", 0
  %".140" = add i64 %".138", %".139"
  %".141" = inttoptr i64 %".140" to <8 x float>*
  %".142" = load <8 x float>, <8 x float>* %".141", align 4
  %".143" = fmul <8 x float> %".142", %".48"
  %".144" = mul i64 %".55", 1
  %".145" = add i64 %".138", %".144"
  %".146" = inttoptr i64 %".145" to <8 x float>*
  %".147" = load <8 x float>, <8 x float>* %".146", align 4
  %".148" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".147", <8 x float> %".51", <8 x float> %".143")
  %".149" = mul i64 %".55", 2
  %".150" = add i64 %".138", %".149"
  %".151" = inttoptr i64 %".150" to <8 x float>*
  %".152" = load <8 x float>, <8 x float>* %".151", align 4
  %".153" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".152", <8 x float> %".54", <8 x float> %".148")
  %".154" = fadd contract <8 x float> %".153", %".60"
  %".155" = fcmp olt <8 x float> %".154", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".156" = select  <8 x i1> %".155", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".154"
  %".157" = fcmp ole <8 x float> %".154", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".158" = select  <8 x i1> %".157", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".154"
  %".159" = mul i64 %".62", %".34"
  %".160" = add i64 %".132", 0
  %".161" = mul i64 %".160", %".37"
  %".162" = add i64 %".45", %".159"
  %".163" = add i64 %".162", %".161"
  %".164" = inttoptr i64 %".163" to <8 x float>*
  store <8 x float> %".158", <8 x float>* %".164", align 4
  %".166" = add i64 %".129", 1
  br label %"head.2"
end.2:
  %".168" = add i64 %".62", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
