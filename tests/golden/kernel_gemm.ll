; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14")
{
entry:
  %".16" = inttoptr i64 %".1" to i64*
  %".17" = load i64, i64* %".16"
  %".18" = add i64 %".1", 8
  %".19" = inttoptr i64 %".18" to i64*
  %".20" = load i64, i64* %".19"
  %".21" = mul i64 %".7", 32
  br label %"head"
head:
  %".23" = phi  i64 [0, %"entry"], [%".234", %"end.4"]
  %".24" = icmp slt i64 %".23", %".11"
  br i1 %".24", label %"body", label %"end"
body:
  %".26" = mul i64 %".23", %".12"
  %".27" = mul i64 %".23", %".13"
  %".28" = icmp ne i64 %".8", 0
  br i1 %".28", label %"go", label %"again"
end:
  ret void
again:
  %".30" = inttoptr i64 %".3" to i64*
  %".31" = load i64, i64* %".30"
  %".32" = add i64 %".31", %".27"
  %".33" = add i64 %".32", 0
  %".34" = inttoptr i64 %".33" to <8 x float>*
  %".35" = load <8 x float>, <8 x float>* %".34", align 4
  %".36" = add i64 %".3", 8
  %".37" = inttoptr i64 %".36" to i64*
  %".38" = load i64, i64* %".37"
  %".39" = add i64 %".38", %".27"
  %".40" = add i64 %".39", 0
  %".41" = inttoptr i64 %".40" to <8 x float>*
  %".42" = load <8 x float>, <8 x float>* %".41", align 4
  br label %"go"
go:
  %".44" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".35", %"again"]
  %".45" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".42", %"again"]
  br label %"head.1"
head.1:
  %".47" = phi  i64 [0, %"go"], [%".184", %"end.3"]
  %".48" = phi  <8 x float> [%".44", %"go"], [%".159", %"end.3"]
  %".49" = phi  <8 x float> [%".45", %"go"], [%".160", %"end.3"]
  %".50" = icmp slt i64 %".47", %".6"
  br i1 %".50", label %"body.1", label %"end.1"
body.1:
  %".52" = mul i64 %".47", 8
  %".53" = add i64 %".5", %".52"
  %".54" = inttoptr i64 %".53" to i64*
  %".55" = load i64, i64* %".54"
  %".56" = add i64 %".55", %".26"
  %".57" = mul i64 %".47", %".21"
  %".58" = add i64 %".2", %".57"
  %".59" = sdiv i64 %".7", 4
  %".60" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".186" = inttoptr i64 %".14" to i64*
  %".187" = load i64, i64* %".186"
  %".188" = mul i64 %".23", %".187"
  %".189" = icmp ne i64 %".9", 0
  br i1 %".189", label %"final", label %"partial"
head.2:
  %".62" = phi  i64 [0, %"body.1"], [%".151", %"body.2"]
  %".63" = phi  <8 x float> [%".48", %"body.1"], [%".144", %"body.2"]
  %".64" = phi  <8 x float> [%".49", %"body.1"], [%".150", %"body.2"]
  %".65" = icmp slt i64 %".62", %".59"
  br i1 %".65", label %"body.2", label %"end.2"
body.2:
  %".67" = mul i64 %".62", 128
  %".68" = add i64 %".58", %".67"
  %".69" = add i64 %".68", 0
  %".70" = mul i64 %".62", 16
  %".71" = add i64 %".56", %".70"
  %".72" = add i64 %".71", 0
  %".73" = add i64 %".69", 0
  %".74" = inttoptr i64 %".73" to <8 x float>*
  %".75" = load <8 x float>, <8 x float>* %".74", align 4
  %".76" = add i64 %".17", %".72"
  %".77" = inttoptr i64 %".76" to float*
  %".78" = load float, float* %".77"
  %".79" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".78", i32 0
  %".80" = shufflevector <8 x float> %".79", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".81" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".80", <8 x float> %".75", <8 x float> %".63")
  %".82" = add i64 %".20", %".72"
  %".83" = inttoptr i64 %".82" to float*
  %".84" = load float, float* %".83"
  %".85" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".84", i32 0
  %".86" = shufflevector <8 x float> %".85", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".87" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".86", <8 x float> %".75", <8 x float> %".64")
  %".88" = mul i64 %".62", 128
  %".89" = add i64 %".58", %".88"
  %".90" = add i64 %".89", 32
  %".91" = mul i64 %".62", 16
  %".92" = add i64 %".56", %".91"
  %".93" = add i64 %".92", 4
  %".94" = add i64 %".90", 0
  %".95" = inttoptr i64 %".94" to <8 x float>*
  %".96" = load <8 x float>, <8 x float>* %".95", align 4
  %".97" = add i64 %".17", %".93"
  %".98" = inttoptr i64 %".97" to float*
  %".99" = load float, float* %".98"
  %".100" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".99", i32 0
  %".101" = shufflevector <8 x float> %".100", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".102" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".101", <8 x float> %".96", <8 x float> %".81")
  %".103" = add i64 %".20", %".93"
  %".104" = inttoptr i64 %".103" to float*
  %".105" = load float, float* %".104"
  %".106" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".105", i32 0
  %".107" = shufflevector <8 x float> %".106", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".108" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".107", <8 x float> %".96", <8 x float> %".87")
  %".109" = mul i64 %".62", 128
  %".110" = add i64 %".58", %".109"
  %".111" = add i64 %".110", 64
  %".112" = mul i64 %".62", 16
  %".113" = add i64 %".56", %".112"
  %".114" = add i64 %".113", 8
  %".115" = add i64 %".111", 0
  %".116" = inttoptr i64 %".115" to <8 x float>*
  %".117" = load <8 x float>, <8 x float>* %".116", align 4
  %".118" = add i64 %".17", %".114"
  %".119" = inttoptr i64 %".118" to float*
  %".120" = load float, float* %".119"
  %".121" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".120", i32 0
  %".122" = shufflevector <8 x float> %".121", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".123" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".122", <8 x float> %".117", <8 x float> %".102")
  %".124" = add i64 %".20", %".114"
  %".125" = inttoptr i64 %".124" to float*
  %".126" = load float, float* %".125"
  %".127" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".126", i32 0
  %".128" = shufflevector <8 x float> %".127", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".129" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".128", <8 x float> %".117", <8 x float> %".108")
  %".130" = mul i64 %".62", 128
  %".131" = add i64 %".58", %".130"
  %".132" = add i64 %".131", 96
  %".133" = mul i64 %".62", 16
  %".134" = add i64 %".56", %".133"
  %".135" = add i64 %".134", 12
  %".136" = add i64 %".132", 0
  %".137" = inttoptr i64 %".136" to <8 x float>*
  %".138" = load <8 x float>, <8 x float>* %".137", align 4
  %".139" = add i64 %".17", %".135"
  %".140" = inttoptr i64 %".139" to float*
  %".141" = load float, float* %".140"
  %".142" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".141", i32 0
  %".143" = shufflevector <8 x float> %".142", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".144" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".143", <8 x float> %".138", <8 x float> %".123")
  %".145" = add i64 %".20", %".135"
  %".146" = inttoptr i64 %".145" to float*
  %".147" = load float, float* %".146"
  %".148" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".147", i32 0
  %".149" = shufflevector <8 x float> %".148", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".150" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".149", <8 x float> %".138", <8 x float> %".129")
  %".151" = add i64 %".62", 1
  br label %"head.2"
end.2:
  %".153" = mul i64 %".59", 128
  %".154" = add i64 %".58", %".153"
  %".155" = mul i64 %".59", 16
  %".156" = add i64 %".56", %".155"
  br label %"head.3"
head.3:
  %".158" = phi  i64 [0, %"end.2"], [%".182", %"body.3"]
  %".159" = phi  <8 x float> [%".63", %"end.2"], [%".175", %"body.3"]
  %".160" = phi  <8 x float> [%".64", %"end.2"], [%".181", %"body.3"]
  %".161" = icmp slt i64 %".158", %".60"
  br i1 %".161", label %"body.3", label %"end.3"
body.3:
  %".163" = mul i64 %".158", 32
  %".164" = add i64 %".154", %".163"
  %".165" = mul i64 %".158", 4
  %".166" = add i64 %".156", %".165"
  %".167" = add i64 %".164", 0
  %".168" = inttoptr i64 %".167" to <8 x float>*
  %".169" = load <8 x float>, <8 x float>* %".168", align 4
  %".170" = add i64 %".17", %".166"
  %".171" = inttoptr i64 %".170" to float*
  %".172" = load float, float* %".171"
  %".173" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".172", i32 0
  %".174" = shufflevector <8 x float> %".173", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".175" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".174", <8 x float> %".169", <8 x float> %".159")
  %".176" = add i64 %".20", %".166"
  %".177" = inttoptr i64 %".176" to float*
  %".178" = load float, float* %".177"
  %".179" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".178", i32 0
  %".180" = shufflevector <8 x float> %".179", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".181" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".180", <8 x float> %".169", <8 x float> %".160")
  %".182" = add i64 %".158", 1
  br label %"head.3"
end.3:
  %".184" = add i64 %".47", 1
  br label %"head.1"
partial:
  %".191" = inttoptr i64 %".3" to i64*
  %".192" = load i64, i64* %".191"
  %".193" = add i64 %".192", %".27"
  %".194" = add i64 %".193", 0
  %".195" = inttoptr i64 %".194" to <8 x float>*
  store <8 x float> %".48", <8 x float>* %".195", align 4
  %".197" = add i64 %".3", 8
  %".198" = inttoptr i64 %".197" to i64*
  %".199" = load i64, i64* %".198"
  %".200" = add i64 %".199", %".27"
  %".201" = add i64 %".200", 0
  %".202" = inttoptr i64 %".201" to <8 x float>*
  store <8 x float> %".49", <8 x float>* %".202", align 4
  br label %"end.4"
final:
  %".205" = inttoptr i64 %".4" to i64*
  %".206" = load i64, i64* %".205"
  %".207" = add i64 %".206", 0
  %".208" = inttoptr i64 %".207" to <8 x float>*
  %".209" = load <8 x float>, <8 x float>* %".208", align 4
  %".210" = fadd contract <8 x float> %".48", %".209"
  %".211" = fcmp olt <8 x float> %".210", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".212" = select  <8 x i1> %".211", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".210"
  %".213" = fcmp ole <8 x float> %".210", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".214" = select  <8 x i1> %".213", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".210"
  %".215" = inttoptr i64 %".3" to i64*
  %".216" = load i64, i64* %".215"
  %".217" = add i64 %".216", %".27"
  %".218" = add i64 %".217", 0
  %".219" = inttoptr i64 %".218" to <8 x float>*
  store <8 x float> %".214", <8 x float>* %".219", align 4
  %".221" = fadd contract <8 x float> %".49", %".209"
  %".222" = fcmp olt <8 x float> %".221", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".223" = select  <8 x i1> %".222", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".221"
  %".224" = fcmp ole <8 x float> %".221", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".225" = select  <8 x i1> %".224", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".221"
  %".226" = add i64 %".3", 8
  %".227" = inttoptr i64 %".226" to i64*
  %".228" = load i64, i64* %".227"
  %".229" = add i64 %".228", %".27"
  %".230" = add i64 %".229", 0
  %".231" = inttoptr i64 %".230" to <8 x float>*
  store <8 x float> %".225", <8 x float>* %".231", align 4
  br label %"end.4"
end.4:
  %".234" = add i64 %".23", 1
  br label %"head"
}

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
