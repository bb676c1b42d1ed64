; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3") nounwind
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
  %".32" = add i64 %".3", 64
  %".33" = inttoptr i64 %".32" to i64*
  %".34" = load i64, i64* %".33"
  %".35" = add i64 %".3", 72
  %".36" = inttoptr i64 %".35" to i64*
  %".37" = load i64, i64* %".36"
  %".38" = add i64 %".3", 80
  %".39" = inttoptr i64 %".38" to i64*
  %".40" = load i64, i64* %".39"
  %".41" = add i64 %".3", 88
  %".42" = inttoptr i64 %".41" to i64*
  %".43" = load i64, i64* %".42"
  %".44" = add i64 %".2", 40
  %".45" = inttoptr i64 %".44" to i64*
  %".46" = load i64, i64* %".45"
  %".47" = add i64 %".3", 96
  %".48" = inttoptr i64 %".47" to i64*
  %".49" = load i64, i64* %".48"
  %".50" = add i64 %".3", 104
  %".51" = inttoptr i64 %".50" to i64*
  %".52" = load i64, i64* %".51"
  %".53" = mul i64 %".46", %".52"
  %".54" = sub i64 %".49", %".53"
  %".55" = icmp slt i64 %".52", %".54"
  %".56" = select  i1 %".55", i64 %".52", i64 %".54"
  br label %"head"
head:
  %".58" = phi  i64 [0, %"entry"], [%".227", %"end.1"]
  %".59" = icmp slt i64 %".58", %".56"
  br i1 %".59", label %"body", label %"end"
body:
  %".61" = inttoptr i64 %".1" to i64*
  %".62" = load i64, i64* %".61"
  %".63" = mul i64 %".58", 32
  %".64" = add i64 %".62", %".63"
  %".65" = add i64 %".1", 8
  %".66" = inttoptr i64 %".65" to i64*
  %".67" = load i64, i64* %".66"
  %".68" = mul i64 %".58", %".43"
  %".69" = add i64 %".67", %".68"
  %".70" = mul i64 %".58", 32
  %".71" = mul i64 %".58", 32
  %".72" = add i64 %".1", 16
  %".73" = inttoptr i64 %".72" to i64*
  %".74" = load i64, i64* %".73"
  %".75" = add i64 %".74", %".70"
  %".76" = add i64 %".3", 112
  %".77" = inttoptr i64 %".76" to i64*
  %".78" = load i64, i64* %".77"
  %".79" = add i64 %".3", 120
  %".80" = inttoptr i64 %".79" to i64*
  %".81" = load i64, i64* %".80"
  %".82" = add i64 %".1", 24
  %".83" = inttoptr i64 %".82" to i64*
  %".84" = load i64, i64* %".83"
  %".85" = add i64 %".84", %".71"
  %".86" = add i64 %".3", 128
  %".87" = inttoptr i64 %".86" to i64*
  %".88" = load i64, i64* %".87"
  %".89" = add i64 %".3", 136
  %".90" = inttoptr i64 %".89" to i64*
  %".91" = load i64, i64* %".90"
  %".92" = add i64 %".85", 0
  %".93" = inttoptr i64 %".92" to <8 x float>*
  %".94" = load <8 x float>, <8 x float>* %".93", align 4
  %".95" = mul i64 %".34", 0
  %".96" = mul i64 %".37", 0
  %".97" = add i64 %".69", %".95"
  %".98" = add i64 %".97", %".96"
  %".99" = inttoptr i64 %".98" to <8 x float>*
  %".100" = load <8 x float>, <8 x float>* %".99", align 4
  %".101" = mul i64 %".34", 0
  %".102" = mul i64 %".37", 1
  %".103" = add i64 %".69", %".101"
  %".104" = add i64 %".103", %".102"
  %".105" = inttoptr i64 %".104" to <8 x float>*
  %".106" = load <8 x float>, <8 x float>* %".105", align 4
  %".107" = mul i64 %".34", 0
  %".108" = mul i64 %".37", 2
  %".109" = add i64 %".69", %".107"
  %".110" = add i64 %".109", %".108"
  %".111" = inttoptr i64 %".110" to <8 x float>*
  %".112" = load <8 x float>, <8 x float>* %".111", align 4
  br label %"head.1"
end:
  ret void
head.1:
  %".114" = phi  i64 [0, %"body"], [%".225", %"end.3"]
  %".115" = icmp slt i64 %".114", %".16"
  br i1 %".115", label %"body.1", label %"end.1"
body.1:
  %".117" = sdiv i64 %".19", 2
  br label %"head.2"
end.1:
  %".227" = add i64 %".58", 1
  br label %"head"
head.2:
  %".119" = phi  i64 [0, %"body.1"], [%".178", %"body.2"]
  %".120" = icmp slt i64 %".119", %".117"
  br i1 %".120", label %"body.2", label %"end.2"
body.2:
  %".122" = mul i64 %".119", 2
  %".123" = mul i64 %".114", %".22"
  %".124" = mul i64 %".122", %".28"
  %".125" = add i64 %".64", %".123"
  %".126" = add i64 %".125", %".124"
  %".127" = mul i64 %".25", 0
  %".128" = add i64 %".126", %".127"
  %".129" = sdiv i64 %".28", 1
  %".130" = mul i64 %".129", 0
  %".131" = add i64 %".128", %".130"
  %".132" = inttoptr i64 %".131" to <8 x float>*
  %".133" = load <8 x float>, <8 x float>* %".132", align 4
  %".134" = fmul <8 x float> %".133", %".100"
  %".135" = mul i64 %".129", 1
  %".136" = add i64 %".128", %".135"
  %".137" = inttoptr i64 %".136" to <8 x float>*
  %".138" = load <8 x float>, <8 x float>* %".137", align 4
  %".139" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".138", <8 x float> %".106", <8 x float> %".134")
  %".140" = mul i64 %".129", 2
  %".141" = add i64 %".128", %".140"
  %".142" = inttoptr i64 %".141" to <8 x float>*
  %".143" = load <8 x float>, <8 x float>* %".142", align 4
  %".144" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".143", <8 x float> %".112", <8 x float> %".139")
  %".145" = fmul <8 x float> %".138", %".100"
  %".146" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".143", <8 x float> %".106", <8 x float> %".145")
  %".147" = mul i64 %".129", 3
  %".148" = add i64 %".128", %".147"
  %".149" = inttoptr i64 %".148" to <8 x float>*
  %".150" = load <8 x float>, <8 x float>* %".149", align 4
  %".151" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".112", <8 x float> %".146")
  %".152" = add i64 %".122", 0
  %".153" = fadd contract <8 x float> %".144", %".94"
  %".154" = fcmp olt <8 x float> %".153", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".155" = select  <8 x i1> %".154", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".153"
  %".156" = fcmp ole <8 x float> %".153", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".157" = select  <8 x i1> %".156", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".153"
  %".158" = mul i64 %".114", %".78"
  %".159" = mul i64 %".152", %".81"
  %".160" = add i64 %".75", %".158"
  %".161" = add i64 %".160", %".159"
  %".162" = add i64 %".161", 0
  %".163" = inttoptr i64 %".162" to <8 x float>*
  store <8 x float> %".157", <8 x float>* %".163", align 4
  %".165" = add i64 %".122", 1
  %".166" = fadd contract <8 x float> %".151", %".94"
  %".167" = fcmp olt <8 x float> %".166", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".168" = select  <8 x i1> %".167", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".166"
  %".169" = fcmp ole <8 x float> %".166", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".170" = select  <8 x i1> %".169", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".166"
  %".171" = mul i64 %".114", %".78"
  %".172" = mul i64 %".165", %".81"
  %".173" = add i64 %".75", %".171"
  %".174" = add i64 %".173", %".172"
  %".175" = add i64 %".174", 0
  %".176" = inttoptr i64 %".175" to <8 x float>*
  store <8 x float> %".170", <8 x float>* %".176", align 4
  %".178" = add i64 %".119", 1
  br label %"head.2"
end.2:
  %".180" = sdiv i64 %".19", 2
  %".181" = mul i64 %".180", 2
  %".182" = srem i64 %".19", 2
  br label %"head.3"
head.3:
  %".184" = phi  i64 [0, %"end.2"], [%".223", %"body.3"]
  %".185" = icmp slt i64 %".184", %".182"
  br i1 %".185", label %"body.3", label %"end.3"
body.3:
  %".187" = add i64 %".181", %".184"
  %".188" = mul i64 %".114", %".22"
  %".189" = mul i64 %".187", %".28"
  %".190" = add i64 %".64", %".188"
  %".191" = add i64 %".190", %".189"
  %".192" = mul i64 %".25", 0
  %".193" = add i64 %".191", %".192"
  %".194" = sdiv i64 %".28", 1
  %".195" = mul i64 %".194", 0
  %".196" = add i64 %".193", %".195"
  %".197" = inttoptr i64 %".196" to <8 x float>*
  %".198" = load <8 x float>, <8 x float>* %".197", align 4
  %".199" = fmul <8 x float> %".198", %".100"
  %".200" = mul i64 %".194", 1
  %".201" = add i64 %".193", %".200"
  %".202" = inttoptr i64 %".201" to <8 x float>*
  %".203" = load <8 x float>, <8 x float>* %".202", align 4
  %".204" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".203", <8 x float> %".106", <8 x float> %".199")
  %".205" = mul i64 %".194", 2
  %".206" = add i64 %".193", %".205"
  %".207" = inttoptr i64 %".206" to <8 x float>*
  %".208" = load <8 x float>, <8 x float>* %".207", align 4
  %".209" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".208", <8 x float> %".112", <8 x float> %".204")
  %".210" = add i64 %".187", 0
  %".211" = fadd contract <8 x float> %".209", %".94"
  %".212" = fcmp olt <8 x float> %".211", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".213" = select  <8 x i1> %".212", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".211"
  %".214" = fcmp ole <8 x float> %".211", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".215" = select  <8 x i1> %".214", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".211"
  %".216" = mul i64 %".114", %".78"
  %".217" = mul i64 %".210", %".81"
  %".218" = add i64 %".75", %".216"
  %".219" = add i64 %".218", %".217"
  %".220" = add i64 %".219", 0
  %".221" = inttoptr i64 %".220" to <8 x float>*
  store <8 x float> %".215", <8 x float>* %".221", align 4
  %".223" = add i64 %".184", 1
  br label %"head.3"
end.3:
  %".225" = add i64 %".114", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
