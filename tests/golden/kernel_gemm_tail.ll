; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13")
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = mul i64 %".7", 64
  %".18" = add i64 %".11", 8
  %".19" = inttoptr i64 %".18" to i64*
  %".20" = load i64, i64* %".19"
  %".21" = inttoptr i64 %".11" to i64*
  %".22" = load i64, i64* %".21"
  br label %"head"
head:
  %".24" = phi  i64 [0, %"entry"], [%".349", %"end.1"]
  %".25" = icmp slt i64 %".24", %".22"
  br i1 %".25", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".28" = phi  i64 [0, %"body"], [%".347", %"end.5"]
  %".29" = icmp slt i64 %".28", %".20"
  br i1 %".29", label %"body.1", label %"end.1"
body.1:
  %".31" = mul i64 %".24", %".20"
  %".32" = add i64 %".31", %".28"
  %".33" = add i64 %".11", 16
  %".34" = inttoptr i64 %".33" to i64*
  %".35" = load i64, i64* %".34"
  %".36" = add i64 %".11", 24
  %".37" = inttoptr i64 %".36" to i64*
  %".38" = load i64, i64* %".37"
  %".39" = mul i64 %".24", %".35"
  %".40" = mul i64 %".28", %".38"
  %".41" = add i64 %".39", %".40"
  %".42" = add i64 %".11", 32
  %".43" = inttoptr i64 %".42" to i64*
  %".44" = load i64, i64* %".43"
  %".45" = add i64 %".11", 40
  %".46" = inttoptr i64 %".45" to i64*
  %".47" = load i64, i64* %".46"
  %".48" = mul i64 %".24", %".44"
  %".49" = mul i64 %".28", %".47"
  %".50" = add i64 %".48", %".49"
  %".51" = icmp ne i64 %".8", 0
  br i1 %".51", label %"go", label %"again"
end.1:
  %".349" = add i64 %".24", 1
  br label %"head"
again:
  %".53" = inttoptr i64 %".3" to i64*
  %".54" = load i64, i64* %".53"
  %".55" = add i64 %".54", %".50"
  %".56" = add i64 %".55", 0
  %".57" = inttoptr i64 %".56" to <8 x float>*
  %".58" = load <8 x float>, <8 x float>* %".57", align 4
  %".59" = icmp ult i64 %".10", 8
  %".60" = select  i1 %".59", i64 %".10", i64 8
  %".61" = trunc i64 %".10" to i32
  %".62" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".61", i32 0
  %".63" = shufflevector <8 x i32> %".62", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".64" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".63"
  %".65" = add i64 %".55", 32
  %".66" = inttoptr i64 %".65" to <8 x float>*
  %".67" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".66", i32 4, <8 x i1> %".64", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".69" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".58", %"again"]
  %".70" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".67", %"again"]
  br label %"head.2"
head.2:
  %".72" = phi  i64 [0, %"go"], [%".215", %"end.4"]
  %".73" = phi  <8 x float> [%".69", %"go"], [%".189", %"end.4"]
  %".74" = phi  <8 x float> [%".70", %"go"], [%".190", %"end.4"]
  %".75" = icmp slt i64 %".72", %".6"
  br i1 %".75", label %"body.2", label %"end.2"
body.2:
  %".77" = mul i64 %".32", %".6"
  %".78" = add i64 %".77", %".72"
  %".79" = mul i64 %".72", 8
  %".80" = add i64 %".5", %".79"
  %".81" = inttoptr i64 %".80" to i64*
  %".82" = load i64, i64* %".81"
  %".83" = add i64 %".82", %".41"
  %".84" = mul i64 %".72", %".17"
  %".85" = add i64 %".2", %".84"
  %".86" = sdiv i64 %".7", 4
  %".87" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".217" = icmp ne i64 %".9", 0
  br i1 %".217", label %"final", label %"partial"
head.3:
  %".89" = phi  i64 [0, %"body.2"], [%".178", %"body.3"]
  %".90" = phi  <8 x float> [%".73", %"body.2"], [%".176", %"body.3"]
  %".91" = phi  <8 x float> [%".74", %"body.2"], [%".177", %"body.3"]
  %".92" = icmp slt i64 %".89", %".86"
  br i1 %".92", label %"body.3", label %"end.3"
body.3:
  %".94" = mul i64 %".89", 4
  %".95" = mul i64 %".94", 64
  %".96" = add i64 %".85", %".95"
  %".97" = add i64 %".96", 0
  %".98" = mul i64 %".94", 4
  %".99" = add i64 %".83", %".98"
  %".100" = add i64 %".99", 0
  %".101" = add i64 %".97", 0
  %".102" = inttoptr i64 %".101" to <8 x float>*
  %".103" = load <8 x float>, <8 x float>* %".102", align 4
  %".104" = add i64 %".97", 32
  %".105" = inttoptr i64 %".104" to <8 x float>*
  %".106" = load <8 x float>, <8 x float>* %".105", align 4
  %".107" = add i64 %".16", %".100"
  %".108" = add i64 %".107", 0
  %".109" = inttoptr i64 %".108" to float*
  %".110" = load float, float* %".109"
  %".111" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".110", i32 0
  %".112" = shufflevector <8 x float> %".111", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".113" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".112", <8 x float> %".103", <8 x float> %".90")
  %".114" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".112", <8 x float> %".106", <8 x float> %".91")
  %".115" = mul i64 %".89", 4
  %".116" = mul i64 %".115", 64
  %".117" = add i64 %".85", %".116"
  %".118" = add i64 %".117", 64
  %".119" = mul i64 %".115", 4
  %".120" = add i64 %".83", %".119"
  %".121" = add i64 %".120", 4
  %".122" = add i64 %".118", 0
  %".123" = inttoptr i64 %".122" to <8 x float>*
  %".124" = load <8 x float>, <8 x float>* %".123", align 4
  %".125" = add i64 %".118", 32
  %".126" = inttoptr i64 %".125" to <8 x float>*
  %".127" = load <8 x float>, <8 x float>* %".126", align 4
  %".128" = add i64 %".16", %".121"
  %".129" = add i64 %".128", 0
  %".130" = inttoptr i64 %".129" to float*
  %".131" = load float, float* %".130"
  %".132" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".131", i32 0
  %".133" = shufflevector <8 x float> %".132", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".134" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".133", <8 x float> %".124", <8 x float> %".113")
  %".135" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".133", <8 x float> %".127", <8 x float> %".114")
  %".136" = mul i64 %".89", 4
  %".137" = mul i64 %".136", 64
  %".138" = add i64 %".85", %".137"
  %".139" = add i64 %".138", 128
  %".140" = mul i64 %".136", 4
  %".141" = add i64 %".83", %".140"
  %".142" = add i64 %".141", 8
  %".143" = add i64 %".139", 0
  %".144" = inttoptr i64 %".143" to <8 x float>*
  %".145" = load <8 x float>, <8 x float>* %".144", align 4
  %".146" = add i64 %".139", 32
  %".147" = inttoptr i64 %".146" to <8 x float>*
  %".148" = load <8 x float>, <8 x float>* %".147", align 4
  %".149" = add i64 %".16", %".142"
  %".150" = add i64 %".149", 0
  %".151" = inttoptr i64 %".150" to float*
  %".152" = load float, float* %".151"
  %".153" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".152", i32 0
  %".154" = shufflevector <8 x float> %".153", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".155" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".145", <8 x float> %".134")
  %".156" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".154", <8 x float> %".148", <8 x float> %".135")
  %".157" = mul i64 %".89", 4
  %".158" = mul i64 %".157", 64
  %".159" = add i64 %".85", %".158"
  %".160" = add i64 %".159", 192
  %".161" = mul i64 %".157", 4
  %".162" = add i64 %".83", %".161"
  %".163" = add i64 %".162", 12
  %".164" = add i64 %".160", 0
  %".165" = inttoptr i64 %".164" to <8 x float>*
  %".166" = load <8 x float>, <8 x float>* %".165", align 4
  %".167" = add i64 %".160", 32
  %".168" = inttoptr i64 %".167" to <8 x float>*
  %".169" = load <8 x float>, <8 x float>* %".168", align 4
  %".170" = add i64 %".16", %".163"
  %".171" = add i64 %".170", 0
  %".172" = inttoptr i64 %".171" to float*
  %".173" = load float, float* %".172"
  %".174" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".173", i32 0
  %".175" = shufflevector <8 x float> %".174", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".176" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".175", <8 x float> %".166", <8 x float> %".155")
  %".177" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".175", <8 x float> %".169", <8 x float> %".156")
  %".178" = add i64 %".89", 1
  br label %"head.3"
end.3:
  %".180" = mul i64 %".86", 4
  %".181" = mul i64 %".180", 64
  %".182" = add i64 %".85", %".181"
  %".183" = add i64 %".182", 0
  %".184" = mul i64 %".180", 4
  %".185" = add i64 %".83", %".184"
  %".186" = add i64 %".185", 0
  br label %"head.4"
head.4:
  %".188" = phi  i64 [0, %"end.3"], [%".213", %"body.4"]
  %".189" = phi  <8 x float> [%".90", %"end.3"], [%".211", %"body.4"]
  %".190" = phi  <8 x float> [%".91", %"end.3"], [%".212", %"body.4"]
  %".191" = icmp slt i64 %".188", %".87"
  br i1 %".191", label %"body.4", label %"end.4"
body.4:
  %".193" = mul i64 %".188", 64
  %".194" = add i64 %".183", %".193"
  %".195" = add i64 %".194", 0
  %".196" = mul i64 %".188", 4
  %".197" = add i64 %".186", %".196"
  %".198" = add i64 %".197", 0
  %".199" = add i64 %".195", 0
  %".200" = inttoptr i64 %".199" to <8 x float>*
  %".201" = load <8 x float>, <8 x float>* %".200", align 4
  %".202" = add i64 %".195", 32
  %".203" = inttoptr i64 %".202" to <8 x float>*
  %".204" = load <8 x float>, <8 x float>* %".203", align 4
  %".205" = add i64 %".16", %".198"
  %".206" = add i64 %".205", 0
  %".207" = inttoptr i64 %".206" to float*
  %".208" = load float, float* %".207"
  %".209" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".208", i32 0
  %".210" = shufflevector <8 x float> %".209", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".211" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".210", <8 x float> %".201", <8 x float> %".189")
  %".212" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".210", <8 x float> %".204", <8 x float> %".190")
  %".213" = add i64 %".188", 1
  br label %"head.4"
end.4:
  %".215" = add i64 %".72", 1
  br label %"head.2"
partial:
  %".219" = inttoptr i64 %".3" to i64*
  %".220" = load i64, i64* %".219"
  %".221" = add i64 %".220", %".50"
  %".222" = add i64 %".221", 0
  %".223" = inttoptr i64 %".222" to <8 x float>*
  store <8 x float> %".73", <8 x float>* %".223", align 4
  %".225" = icmp ult i64 %".10", 8
  %".226" = select  i1 %".225", i64 %".10", i64 8
  %".227" = trunc i64 %".10" to i32
  %".228" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".227", i32 0
  %".229" = shufflevector <8 x i32> %".228", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".230" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".229"
  %".231" = inttoptr i64 %".3" to i64*
  %".232" = load i64, i64* %".231"
  %".233" = add i64 %".232", %".50"
  %".234" = add i64 %".233", 32
  %".235" = inttoptr i64 %".234" to <8 x float>*
  %".236" = and i64 %".226", 8
  %".237" = icmp ne i64 %".236", 0
  br i1 %".237", label %"partial.if", label %"partial.endif"
final:
  %".283" = inttoptr i64 %".3" to i64*
  %".284" = load i64, i64* %".283"
  %".285" = add i64 %".284", %".50"
  %".286" = add i64 %".285", 0
  %".287" = inttoptr i64 %".286" to <8 x float>*
  store <8 x float> %".73", <8 x float>* %".287", align 4
  %".289" = icmp ult i64 %".10", 8
  %".290" = select  i1 %".289", i64 %".10", i64 8
  %".291" = trunc i64 %".10" to i32
  %".292" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".291", i32 0
  %".293" = shufflevector <8 x i32> %".292", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".294" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".293"
  %".295" = inttoptr i64 %".3" to i64*
  %".296" = load i64, i64* %".295"
  %".297" = add i64 %".296", %".50"
  %".298" = add i64 %".297", 32
  %".299" = inttoptr i64 %".298" to <8 x float>*
  %".300" = and i64 %".290", 8
  %".301" = icmp ne i64 %".300", 0
  br i1 %".301", label %"final.if", label %"final.endif"
end.5:
  %".347" = add i64 %".28", 1
  br label %"head.1"
partial.if:
  %".239" = add i64 %".234", 0
  %".240" = inttoptr i64 %".239" to <8 x float>*
  store <8 x float> %".74", <8 x float>* %".240", align 4
  br label %"partial.endif"
partial.endif:
  %".243" = select  i1 %".237", i64 32, i64 0
  %".244" = add i64 0, %".243"
  %".245" = select  i1 %".237", <8 x float> %".74", <8 x float> %".74"
  %".246" = and i64 %".226", 4
  %".247" = icmp ne i64 %".246", 0
  %".248" = shufflevector <8 x float> %".245", <8 x float> %".245", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".249" = shufflevector <8 x float> %".245", <8 x float> %".245", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".247", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".251" = add i64 %".234", %".244"
  %".252" = inttoptr i64 %".251" to <4 x float>*
  store <4 x float> %".248", <4 x float>* %".252", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".255" = select  i1 %".247", i64 16, i64 0
  %".256" = add i64 %".244", %".255"
  %".257" = select  i1 %".247", <4 x float> %".249", <4 x float> %".248"
  %".258" = and i64 %".226", 2
  %".259" = icmp ne i64 %".258", 0
  %".260" = shufflevector <4 x float> %".257", <4 x float> %".257", <2 x i32> <i32 0, i32 1>
  %".261" = shufflevector <4 x float> %".257", <4 x float> %".257", <2 x i32> <i32 2, i32 3>
  br i1 %".259", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".263" = add i64 %".234", %".256"
  %".264" = inttoptr i64 %".263" to <2 x float>*
  store <2 x float> %".260", <2 x float>* %".264", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".267" = select  i1 %".259", i64 8, i64 0
  %".268" = add i64 %".256", %".267"
  %".269" = select  i1 %".259", <2 x float> %".261", <2 x float> %".260"
  %".270" = and i64 %".226", 1
  %".271" = icmp ne i64 %".270", 0
  %".272" = shufflevector <2 x float> %".269", <2 x float> %".269", <1 x i32> <i32 0>
  %".273" = shufflevector <2 x float> %".269", <2 x float> %".269", <1 x i32> <i32 1>
  br i1 %".271", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".275" = add i64 %".234", %".268"
  %".276" = inttoptr i64 %".275" to <1 x float>*
  store <1 x float> %".272", <1 x float>* %".276", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".279" = select  i1 %".271", i64 4, i64 0
  %".280" = add i64 %".268", %".279"
  %".281" = select  i1 %".271", <1 x float> %".273", <1 x float> %".272"
  br label %"end.5"
final.if:
  %".303" = add i64 %".298", 0
  %".304" = inttoptr i64 %".303" to <8 x float>*
  store <8 x float> %".74", <8 x float>* %".304", align 4
  br label %"final.endif"
final.endif:
  %".307" = select  i1 %".301", i64 32, i64 0
  %".308" = add i64 0, %".307"
  %".309" = select  i1 %".301", <8 x float> %".74", <8 x float> %".74"
  %".310" = and i64 %".290", 4
  %".311" = icmp ne i64 %".310", 0
  %".312" = shufflevector <8 x float> %".309", <8 x float> %".309", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".313" = shufflevector <8 x float> %".309", <8 x float> %".309", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".311", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".315" = add i64 %".298", %".308"
  %".316" = inttoptr i64 %".315" to <4 x float>*
  store <4 x float> %".312", <4 x float>* %".316", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".319" = select  i1 %".311", i64 16, i64 0
  %".320" = add i64 %".308", %".319"
  %".321" = select  i1 %".311", <4 x float> %".313", <4 x float> %".312"
  %".322" = and i64 %".290", 2
  %".323" = icmp ne i64 %".322", 0
  %".324" = shufflevector <4 x float> %".321", <4 x float> %".321", <2 x i32> <i32 0, i32 1>
  %".325" = shufflevector <4 x float> %".321", <4 x float> %".321", <2 x i32> <i32 2, i32 3>
  br i1 %".323", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".327" = add i64 %".298", %".320"
  %".328" = inttoptr i64 %".327" to <2 x float>*
  store <2 x float> %".324", <2 x float>* %".328", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".331" = select  i1 %".323", i64 8, i64 0
  %".332" = add i64 %".320", %".331"
  %".333" = select  i1 %".323", <2 x float> %".325", <2 x float> %".324"
  %".334" = and i64 %".290", 1
  %".335" = icmp ne i64 %".334", 0
  %".336" = shufflevector <2 x float> %".333", <2 x float> %".333", <1 x i32> <i32 0>
  %".337" = shufflevector <2 x float> %".333", <2 x float> %".333", <1 x i32> <i32 1>
  br i1 %".335", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".339" = add i64 %".298", %".332"
  %".340" = inttoptr i64 %".339" to <1 x float>*
  store <1 x float> %".336", <1 x float>* %".340", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".343" = select  i1 %".335", i64 4, i64 0
  %".344" = add i64 %".332", %".343"
  %".345" = select  i1 %".335", <1 x float> %".337", <1 x float> %".336"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
