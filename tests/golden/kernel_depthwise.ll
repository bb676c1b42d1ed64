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
  %".43" = mul i64 %".39", 0
  %".44" = mul i64 %".42", 0
  %".45" = add i64 %".36", %".43"
  %".46" = add i64 %".45", %".44"
  %".47" = inttoptr i64 %".46" to <8 x float>*
  %".48" = load <8 x float>, <8 x float>* %".47", align 4
  %".49" = mul i64 %".39", 0
  %".50" = mul i64 %".42", 1
  %".51" = add i64 %".36", %".49"
  %".52" = add i64 %".51", %".50"
  %".53" = inttoptr i64 %".52" to <8 x float>*
  %".54" = load <8 x float>, <8 x float>* %".53", align 4
  %".55" = mul i64 %".39", 0
  %".56" = mul i64 %".42", 2
  %".57" = add i64 %".36", %".55"
  %".58" = add i64 %".57", %".56"
  %".59" = inttoptr i64 %".58" to <8 x float>*
  %".60" = load <8 x float>, <8 x float>* %".59", align 4
  %".61" = add i64 %".1", 16
  %".62" = inttoptr i64 %".61" to i64*
  %".63" = load i64, i64* %".62"
  %".64" = add i64 %".3", 80
  %".65" = inttoptr i64 %".64" to i64*
  %".66" = load i64, i64* %".65"
  %".67" = add i64 %".3", 88
  %".68" = inttoptr i64 %".67" to i64*
  %".69" = load i64, i64* %".68"
  %".70" = add i64 %".1", 24
  %".71" = inttoptr i64 %".70" to i64*
  %".72" = load i64, i64* %".71"
  %".73" = add i64 %".3", 96
  %".74" = inttoptr i64 %".73" to i64*
  %".75" = load i64, i64* %".74"
  %".76" = add i64 %".3", 104
  %".77" = inttoptr i64 %".76" to i64*
  %".78" = load i64, i64* %".77"
  %".79" = inttoptr i64 %".72" to <8 x float>*
  %".80" = load <8 x float>, <8 x float>* %".79", align 4
  br label %"head"
head:
  %".82" = phi  i64 [0, %"entry"], [%".190", %"end.2"]
  %".83" = icmp slt i64 %".82", %".16"
  br i1 %".83", label %"body", label %"end"
body:
  %".85" = sdiv i64 %".19", 2
  br label %"head.1"
end:
  ret void
head.1:
  %".87" = phi  i64 [0, %"body"], [%".144", %"body.1"]
  %".88" = icmp slt i64 %".87", %".85"
  br i1 %".88", label %"body.1", label %"end.1"
body.1:
  %".90" = mul i64 %".87", 2
  %".91" = mul i64 %".82", %".22"
  %".92" = mul i64 %".90", %".28"
  %".93" = add i64 %".33", %".91"
  %".94" = add i64 %".93", %".92"
  %".95" = mul i64 %".25", 0
  %".96" = add i64 %".94", %".95"
  %".97" = sdiv i64 %".28", 1
  %".98" = mul i64 %".97", 0
  %".99" = add i64 %".96", %".98"
  %".100" = inttoptr i64 %".99" to <8 x float>*
  %".101" = load <8 x float>, <8 x float>* %".100", align 4
  %".102" = fmul <8 x float> %".101", %".48"
  %".103" = mul i64 %".97", 1
  %".104" = add i64 %".96", %".103"
  %".105" = inttoptr i64 %".104" to <8 x float>*
  %".106" = load <8 x float>, <8 x float>* %".105", align 4
  %".107" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".106", <8 x float> %".54", <8 x float> %".102")
  %".108" = mul i64 %".97", 2
  %".109" = add i64 %".96", %".108"
  %".110" = inttoptr i64 %".109" to <8 x float>*
  %".111" = load <8 x float>, <8 x float>* %".110", align 4
  %".112" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".111", <8 x float> %".60", <8 x float> %".107")
  %".113" = fmul <8 x float> %".106", %".48"
  %".114" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".111", <8 x float> %".54", <8 x float> %".113")
  %".115" = mul i64 %".97", 3
  %".116" = add i64 %".96", %".115"
  %".117" = inttoptr i64 %".116" to <8 x float>*
  %".118" = load <8 x float>, <8 x float>* %".117", align 4
  %".119" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".118", <8 x float> %".60", <8 x float> %".114")
  %".120" = add i64 %".90", 0
  %".121" = fadd contract <8 x float> %".112", %".80"
  %".122" = fcmp olt <8 x float> %".121", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".123" = select  <8 x i1> %".122", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".121"
  %".124" = fcmp ole <8 x float> %".121", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".125" = select  <8 x i1> %".124", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".121"
  %".126" = mul i64 %".82", %".66"
  %".127" = mul i64 %".120", %".69"
  %".128" = add i64 %".63", %".126"
  %".129" = add i64 %".128", %".127"
  %".130" = inttoptr i64 %".129" to <8 x float>*
  store <8 x float> %".125", <8 x float>* %".130", align 4
  %".132" = add i64 %".90", 1
  %".133" = fadd contract <8 x float> %".119", %".80"
  %".134" = fcmp olt <8 x float> %".133", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".135" = select  <8 x i1> %".134", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".133"
  %".136" = fcmp ole <8 x float> %".133", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".137" = select  <8 x i1> %".136", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".133"
  %".138" = mul i64 %".82", %".66"
  %".139" = mul i64 %".132", %".69"
  %".140" = add i64 %".63", %".138"
  %".141" = add i64 %".140", %".139"
  %".142" = inttoptr i64 %".141" to <8 x float>*
  store <8 x float> %".137", <8 x float>* %".142", align 4
  %".144" = add i64 %".87", 1
  br label %"head.1"
end.1:
  %".146" = sdiv i64 %".19", 2
  %".147" = mul i64 %".146", 2
  %".148" = srem i64 %".19", 2
  br label %"head.2"
head.2:
  %".150" = phi  i64 [0, %"end.1"], [%".188", %"body.2"]
  %".151" = icmp slt i64 %".150", %".148"
  br i1 %".151", label %"body.2", label %"end.2"
body.2:
  %".153" = add i64 %".147", %".150"
  %".154" = mul i64 %".82", %".22"
  %".155" = mul i64 %".153", %".28"
  %".156" = add i64 %".33", %".154"
  %".157" = add i64 %".156", %".155"
  %".158" = mul i64 %".25", 0
  %".159" = add i64 %".157", %".158"
  %".160" = sdiv i64 %".28", 1
  %".161" = mul i64 %".160", 0
  %".162" = add i64 %".159", %".161"
  %".163" = inttoptr i64 %".162" to <8 x float>*
  %".164" = load <8 x float>, <8 x float>* %".163", align 4
  %".165" = fmul <8 x float> %".164", %".48"
  %".166" = mul i64 %".160", 1
  %".167" = add i64 %".159", %".166"
  %".168" = inttoptr i64 %".167" to <8 x float>*
  %".169" = load <8 x float>, <8 x float>* %".168", align 4
  %".170" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".169", <8 x float> %".54", <8 x float> %".165")
  %".171" = mul i64 %".160", 2
  %".172" = add i64 %".159", %".171"
  %".173" = inttoptr i64 %".172" to <8 x float>*
  %".174" = load <8 x float>, <8 x float>* %".173", align 4
  %".175" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".174", <8 x float> %".60", <8 x float> %".170")
  %".176" = add i64 %".153", 0
  %".177" = fadd contract <8 x float> %".175", %".80"
  %".178" = fcmp olt <8 x float> %".177", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".179" = select  <8 x i1> %".178", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".177"
  %".180" = fcmp ole <8 x float> %".177", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".181" = select  <8 x i1> %".180", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".177"
  %".182" = mul i64 %".82", %".66"
  %".183" = mul i64 %".176", %".69"
  %".184" = add i64 %".63", %".182"
  %".185" = add i64 %".184", %".183"
  %".186" = inttoptr i64 %".185" to <8 x float>*
  store <8 x float> %".181", <8 x float>* %".186", align 4
  %".188" = add i64 %".150", 1
  br label %"head.2"
end.2:
  %".190" = add i64 %".82", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
