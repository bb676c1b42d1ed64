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
  %".44" = add i64 %".3", 96
  %".45" = inttoptr i64 %".44" to i64*
  %".46" = load i64, i64* %".45"
  %".47" = add i64 %".3", 104
  %".48" = inttoptr i64 %".47" to i64*
  %".49" = load i64, i64* %".48"
  %".50" = add i64 %".2", 40
  %".51" = inttoptr i64 %".50" to i64*
  %".52" = load i64, i64* %".51"
  %".53" = add i64 %".3", 112
  %".54" = inttoptr i64 %".53" to i64*
  %".55" = load i64, i64* %".54"
  %".56" = add i64 %".3", 120
  %".57" = inttoptr i64 %".56" to i64*
  %".58" = load i64, i64* %".57"
  %".59" = mul i64 %".52", %".58"
  %".60" = sub i64 %".55", %".59"
  %".61" = icmp slt i64 %".58", %".60"
  %".62" = select  i1 %".61", i64 %".58", i64 %".60"
  br label %"head"
head:
  %".64" = phi  i64 [0, %"entry"], [%".239", %"end.1"]
  %".65" = icmp slt i64 %".64", %".62"
  br i1 %".65", label %"body", label %"end"
body:
  %".67" = inttoptr i64 %".1" to i64*
  %".68" = load i64, i64* %".67"
  %".69" = mul i64 %".64", 32
  %".70" = add i64 %".68", %".69"
  %".71" = add i64 %".1", 8
  %".72" = inttoptr i64 %".71" to i64*
  %".73" = load i64, i64* %".72"
  %".74" = mul i64 %".64", %".49"
  %".75" = add i64 %".73", %".74"
  %".76" = mul i64 %".64", 32
  %".77" = mul i64 %".64", 32
  %".78" = add i64 %".1", 16
  %".79" = inttoptr i64 %".78" to i64*
  %".80" = load i64, i64* %".79"
  %".81" = add i64 %".80", %".76"
  %".82" = add i64 %".3", 128
  %".83" = inttoptr i64 %".82" to i64*
  %".84" = load i64, i64* %".83"
  %".85" = add i64 %".3", 136
  %".86" = inttoptr i64 %".85" to i64*
  %".87" = load i64, i64* %".86"
  %".88" = add i64 %".1", 24
  %".89" = inttoptr i64 %".88" to i64*
  %".90" = load i64, i64* %".89"
  %".91" = add i64 %".90", %".77"
  %".92" = add i64 %".3", 144
  %".93" = inttoptr i64 %".92" to i64*
  %".94" = load i64, i64* %".93"
  %".95" = add i64 %".3", 152
  %".96" = inttoptr i64 %".95" to i64*
  %".97" = load i64, i64* %".96"
  %".98" = add i64 %".91", 0
  %".99" = inttoptr i64 %".98" to <8 x float>*
  %".100" = load <8 x float>, <8 x float>* %".99", align 4
  %".101" = mul i64 %".37", 0
  %".102" = add i64 %".75", %".101"
  %".103" = mul i64 %".40", 0
  %".104" = mul i64 %".43", 0
  %".105" = add i64 %".102", %".103"
  %".106" = add i64 %".105", %".104"
  %".107" = inttoptr i64 %".106" to <8 x float>*
  %".108" = load <8 x float>, <8 x float>* %".107", align 4
  %".109" = mul i64 %".40", 0
  %".110" = mul i64 %".43", 1
  %".111" = add i64 %".102", %".109"
  %".112" = add i64 %".111", %".110"
  %".113" = inttoptr i64 %".112" to <8 x float>*
  %".114" = load <8 x float>, <8 x float>* %".113", align 4
  %".115" = mul i64 %".40", 0
  %".116" = mul i64 %".43", 2
  %".117" = add i64 %".102", %".115"
  %".118" = add i64 %".117", %".116"
  %".119" = inttoptr i64 %".118" to <8 x float>*
  %".120" = load <8 x float>, <8 x float>* %".119", align 4
  br label %"head.1"
end:
  ret void
head.1:
  %".122" = phi  i64 [0, %"body"], [%".237", %"end.3"]
  %".123" = icmp slt i64 %".122", %".16"
  br i1 %".123", label %"body.1", label %"end.1"
body.1:
  %".125" = sdiv i64 %".19", 2
  br label %"head.2"
end.1:
  %".239" = add i64 %".64", 1
  br label %"head"
head.2:
  %".127" = phi  i64 [0, %"body.1"], [%".188", %"body.2"]
  %".128" = icmp slt i64 %".127", %".125"
  br i1 %".128", label %"body.2", label %"end.2"
body.2:
  %".130" = mul i64 %".127", 2
  %".131" = mul i64 %".122", %".22"
  %".132" = mul i64 %".130", %".31"
  %".133" = add i64 %".70", %".131"
  %".134" = add i64 %".133", %".132"
  %".135" = mul i64 %".25", 0
  %".136" = mul i64 %".28", 0
  %".137" = add i64 %".134", %".135"
  %".138" = add i64 %".137", %".136"
  %".139" = sdiv i64 %".31", 1
  %".140" = mul i64 %".139", 0
  %".141" = add i64 %".138", %".140"
  %".142" = inttoptr i64 %".141" to <8 x float>*
  %".143" = load <8 x float>, <8 x float>* %".142", align 4
  %".144" = fmul <8 x float> %".143", %".108"
  %".145" = mul i64 %".139", 1
  %".146" = add i64 %".138", %".145"
  %".147" = inttoptr i64 %".146" to <8 x float>*
  %".148" = load <8 x float>, <8 x float>* %".147", align 4
  %".149" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".148", <8 x float> %".114", <8 x float> %".144")
  %".150" = mul i64 %".139", 2
  %".151" = add i64 %".138", %".150"
  %".152" = inttoptr i64 %".151" to <8 x float>*
  %".153" = load <8 x float>, <8 x float>* %".152", align 4
  %".154" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".153", <8 x float> %".120", <8 x float> %".149")
  %".155" = fmul <8 x float> %".148", %".108"
  %".156" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".153", <8 x float> %".114", <8 x float> %".155")
  %".157" = mul i64 %".139", 3
  %".158" = add i64 %".138", %".157"
  %".159" = inttoptr i64 %".158" to <8 x float>*
  %".160" = load <8 x float>, <8 x float>* %".159", align 4
  %".161" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".160", <8 x float> %".120", <8 x float> %".156")
  %".162" = add i64 %".130", 0
  %".163" = fadd contract <8 x float> %".154", %".100"
  %".164" = fcmp olt <8 x float> %".163", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".165" = select  <8 x i1> %".164", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".163"
  %".166" = fcmp ole <8 x float> %".163", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".167" = select  <8 x i1> %".166", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".163"
  %".168" = mul i64 %".122", %".84"
  %".169" = mul i64 %".162", %".87"
  %".170" = add i64 %".81", %".168"
  %".171" = add i64 %".170", %".169"
  %".172" = add i64 %".171", 0
  %".173" = inttoptr i64 %".172" to <8 x float>*
  store <8 x float> %".167", <8 x float>* %".173", align 4
  %".175" = add i64 %".130", 1
  %".176" = fadd contract <8 x float> %".161", %".100"
  %".177" = fcmp olt <8 x float> %".176", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".178" = select  <8 x i1> %".177", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".176"
  %".179" = fcmp ole <8 x float> %".176", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".180" = select  <8 x i1> %".179", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".176"
  %".181" = mul i64 %".122", %".84"
  %".182" = mul i64 %".175", %".87"
  %".183" = add i64 %".81", %".181"
  %".184" = add i64 %".183", %".182"
  %".185" = add i64 %".184", 0
  %".186" = inttoptr i64 %".185" to <8 x float>*
  store <8 x float> %".180", <8 x float>* %".186", align 4
  %".188" = add i64 %".127", 1
  br label %"head.2"
end.2:
  %".190" = sdiv i64 %".19", 2
  %".191" = mul i64 %".190", 2
  %".192" = srem i64 %".19", 2
  br label %"head.3"
head.3:
  %".194" = phi  i64 [0, %"end.2"], [%".235", %"body.3"]
  %".195" = icmp slt i64 %".194", %".192"
  br i1 %".195", label %"body.3", label %"end.3"
body.3:
  %".197" = add i64 %".191", %".194"
  %".198" = mul i64 %".122", %".22"
  %".199" = mul i64 %".197", %".31"
  %".200" = add i64 %".70", %".198"
  %".201" = add i64 %".200", %".199"
  %".202" = mul i64 %".25", 0
  %".203" = mul i64 %".28", 0
  %".204" = add i64 %".201", %".202"
  %".205" = add i64 %".204", %".203"
  %".206" = sdiv i64 %".31", 1
  %".207" = mul i64 %".206", 0
  %".208" = add i64 %".205", %".207"
  %".209" = inttoptr i64 %".208" to <8 x float>*
  %".210" = load <8 x float>, <8 x float>* %".209", align 4
  %".211" = fmul <8 x float> %".210", %".108"
  %".212" = mul i64 %".206", 1
  %".213" = add i64 %".205", %".212"
  %".214" = inttoptr i64 %".213" to <8 x float>*
  %".215" = load <8 x float>, <8 x float>* %".214", align 4
  %".216" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".215", <8 x float> %".114", <8 x float> %".211")
  %".217" = mul i64 %".206", 2
  %".218" = add i64 %".205", %".217"
  %".219" = inttoptr i64 %".218" to <8 x float>*
  %".220" = load <8 x float>, <8 x float>* %".219", align 4
  %".221" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".220", <8 x float> %".120", <8 x float> %".216")
  %".222" = add i64 %".197", 0
  %".223" = fadd contract <8 x float> %".221", %".100"
  %".224" = fcmp olt <8 x float> %".223", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".225" = select  <8 x i1> %".224", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".223"
  %".226" = fcmp ole <8 x float> %".223", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".227" = select  <8 x i1> %".226", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".223"
  %".228" = mul i64 %".122", %".84"
  %".229" = mul i64 %".222", %".87"
  %".230" = add i64 %".81", %".228"
  %".231" = add i64 %".230", %".229"
  %".232" = add i64 %".231", 0
  %".233" = inttoptr i64 %".232" to <8 x float>*
  store <8 x float> %".227", <8 x float>* %".233", align 4
  %".235" = add i64 %".194", 1
  br label %"head.3"
end.3:
  %".237" = add i64 %".122", 1
  br label %"head.1"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
