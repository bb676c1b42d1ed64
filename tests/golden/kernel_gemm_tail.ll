; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13")
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = mul i64 %".7", 64
  %".18" = inttoptr i64 %".11" to i64*
  %".19" = load i64, i64* %".18"
  br label %"head"
head:
  %".21" = phi  i64 [0, %"entry"], [%".345", %"end.1"]
  %".22" = icmp slt i64 %".21", %".19"
  br i1 %".22", label %"body", label %"end"
body:
  %".24" = add i64 %".11", 8
  %".25" = inttoptr i64 %".24" to i64*
  %".26" = load i64, i64* %".25"
  br label %"head.1"
end:
  ret void
head.1:
  %".28" = phi  i64 [0, %"body"], [%".343", %"end.5"]
  %".29" = icmp slt i64 %".28", %".26"
  br i1 %".29", label %"body.1", label %"end.1"
body.1:
  %".31" = add i64 %".11", 16
  %".32" = inttoptr i64 %".31" to i64*
  %".33" = load i64, i64* %".32"
  %".34" = add i64 %".11", 24
  %".35" = inttoptr i64 %".34" to i64*
  %".36" = load i64, i64* %".35"
  %".37" = mul i64 %".21", %".33"
  %".38" = mul i64 %".28", %".36"
  %".39" = add i64 %".37", %".38"
  %".40" = add i64 %".11", 32
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = add i64 %".11", 40
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = mul i64 %".21", %".42"
  %".47" = mul i64 %".28", %".45"
  %".48" = add i64 %".46", %".47"
  %".49" = icmp ne i64 %".8", 0
  br i1 %".49", label %"go", label %"again"
end.1:
  %".345" = add i64 %".21", 1
  br label %"head"
again:
  %".51" = inttoptr i64 %".3" to i64*
  %".52" = load i64, i64* %".51"
  %".53" = add i64 %".52", %".48"
  %".54" = add i64 %".53", 0
  %".55" = inttoptr i64 %".54" to <8 x float>*
  %".56" = load <8 x float>, <8 x float>* %".55", align 4
  %".57" = icmp ult i64 %".10", 8
  %".58" = select  i1 %".57", i64 %".10", i64 8
  %".59" = trunc i64 %".10" to i32
  %".60" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".59", i32 0
  %".61" = shufflevector <8 x i32> %".60", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".62" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".61"
  %".63" = add i64 %".53", 32
  %".64" = inttoptr i64 %".63" to <8 x float>*
  %".65" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".64", i32 4, <8 x i1> %".62", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".67" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".56", %"again"]
  %".68" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".65", %"again"]
  br label %"head.2"
head.2:
  %".70" = phi  i64 [0, %"go"], [%".211", %"end.4"]
  %".71" = phi  <8 x float> [%".67", %"go"], [%".185", %"end.4"]
  %".72" = phi  <8 x float> [%".68", %"go"], [%".186", %"end.4"]
  %".73" = icmp slt i64 %".70", %".6"
  br i1 %".73", label %"body.2", label %"end.2"
body.2:
  %".75" = mul i64 %".70", 8
  %".76" = add i64 %".5", %".75"
  %".77" = inttoptr i64 %".76" to i64*
  %".78" = load i64, i64* %".77"
  %".79" = add i64 %".78", %".39"
  %".80" = mul i64 %".70", %".17"
  %".81" = add i64 %".2", %".80"
  %".82" = sdiv i64 %".7", 4
  %".83" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".213" = icmp ne i64 %".9", 0
  br i1 %".213", label %"final", label %"partial"
head.3:
  %".85" = phi  i64 [0, %"body.2"], [%".174", %"body.3"]
  %".86" = phi  <8 x float> [%".71", %"body.2"], [%".172", %"body.3"]
  %".87" = phi  <8 x float> [%".72", %"body.2"], [%".173", %"body.3"]
  %".88" = icmp slt i64 %".85", %".82"
  br i1 %".88", label %"body.3", label %"end.3"
body.3:
  %".90" = mul i64 %".85", 4
  %".91" = mul i64 %".90", 64
  %".92" = add i64 %".81", %".91"
  %".93" = add i64 %".92", 0
  %".94" = mul i64 %".90", 4
  %".95" = add i64 %".79", %".94"
  %".96" = add i64 %".95", 0
  %".97" = add i64 %".93", 0
  %".98" = inttoptr i64 %".97" to <8 x float>*
  %".99" = load <8 x float>, <8 x float>* %".98", align 4
  %".100" = add i64 %".93", 32
  %".101" = inttoptr i64 %".100" to <8 x float>*
  %".102" = load <8 x float>, <8 x float>* %".101", align 4
  %".103" = add i64 %".16", %".96"
  %".104" = add i64 %".103", 0
  %".105" = inttoptr i64 %".104" to float*
  %".106" = load float, float* %".105"
  %".107" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".106", i32 0
  %".108" = shufflevector <8 x float> %".107", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".109" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".108", <8 x float> %".99", <8 x float> %".86")
  %".110" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".108", <8 x float> %".102", <8 x float> %".87")
  %".111" = mul i64 %".85", 4
  %".112" = mul i64 %".111", 64
  %".113" = add i64 %".81", %".112"
  %".114" = add i64 %".113", 64
  %".115" = mul i64 %".111", 4
  %".116" = add i64 %".79", %".115"
  %".117" = add i64 %".116", 4
  %".118" = add i64 %".114", 0
  %".119" = inttoptr i64 %".118" to <8 x float>*
  %".120" = load <8 x float>, <8 x float>* %".119", align 4
  %".121" = add i64 %".114", 32
  %".122" = inttoptr i64 %".121" to <8 x float>*
  %".123" = load <8 x float>, <8 x float>* %".122", align 4
  %".124" = add i64 %".16", %".117"
  %".125" = add i64 %".124", 0
  %".126" = inttoptr i64 %".125" to float*
  %".127" = load float, float* %".126"
  %".128" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".127", i32 0
  %".129" = shufflevector <8 x float> %".128", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".130" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".129", <8 x float> %".120", <8 x float> %".109")
  %".131" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".129", <8 x float> %".123", <8 x float> %".110")
  %".132" = mul i64 %".85", 4
  %".133" = mul i64 %".132", 64
  %".134" = add i64 %".81", %".133"
  %".135" = add i64 %".134", 128
  %".136" = mul i64 %".132", 4
  %".137" = add i64 %".79", %".136"
  %".138" = add i64 %".137", 8
  %".139" = add i64 %".135", 0
  %".140" = inttoptr i64 %".139" to <8 x float>*
  %".141" = load <8 x float>, <8 x float>* %".140", align 4
  %".142" = add i64 %".135", 32
  %".143" = inttoptr i64 %".142" to <8 x float>*
  %".144" = load <8 x float>, <8 x float>* %".143", align 4
  %".145" = add i64 %".16", %".138"
  %".146" = add i64 %".145", 0
  %".147" = inttoptr i64 %".146" to float*
  %".148" = load float, float* %".147"
  %".149" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".148", i32 0
  %".150" = shufflevector <8 x float> %".149", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".151" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".141", <8 x float> %".130")
  %".152" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".150", <8 x float> %".144", <8 x float> %".131")
  %".153" = mul i64 %".85", 4
  %".154" = mul i64 %".153", 64
  %".155" = add i64 %".81", %".154"
  %".156" = add i64 %".155", 192
  %".157" = mul i64 %".153", 4
  %".158" = add i64 %".79", %".157"
  %".159" = add i64 %".158", 12
  %".160" = add i64 %".156", 0
  %".161" = inttoptr i64 %".160" to <8 x float>*
  %".162" = load <8 x float>, <8 x float>* %".161", align 4
  %".163" = add i64 %".156", 32
  %".164" = inttoptr i64 %".163" to <8 x float>*
  %".165" = load <8 x float>, <8 x float>* %".164", align 4
  %".166" = add i64 %".16", %".159"
  %".167" = add i64 %".166", 0
  %".168" = inttoptr i64 %".167" to float*
  %".169" = load float, float* %".168"
  %".170" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".169", i32 0
  %".171" = shufflevector <8 x float> %".170", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".172" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".171", <8 x float> %".162", <8 x float> %".151")
  %".173" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".171", <8 x float> %".165", <8 x float> %".152")
  %".174" = add i64 %".85", 1
  br label %"head.3"
end.3:
  %".176" = mul i64 %".82", 4
  %".177" = mul i64 %".176", 64
  %".178" = add i64 %".81", %".177"
  %".179" = add i64 %".178", 0
  %".180" = mul i64 %".176", 4
  %".181" = add i64 %".79", %".180"
  %".182" = add i64 %".181", 0
  br label %"head.4"
head.4:
  %".184" = phi  i64 [0, %"end.3"], [%".209", %"body.4"]
  %".185" = phi  <8 x float> [%".86", %"end.3"], [%".207", %"body.4"]
  %".186" = phi  <8 x float> [%".87", %"end.3"], [%".208", %"body.4"]
  %".187" = icmp slt i64 %".184", %".83"
  br i1 %".187", label %"body.4", label %"end.4"
body.4:
  %".189" = mul i64 %".184", 64
  %".190" = add i64 %".179", %".189"
  %".191" = add i64 %".190", 0
  %".192" = mul i64 %".184", 4
  %".193" = add i64 %".182", %".192"
  %".194" = add i64 %".193", 0
  %".195" = add i64 %".191", 0
  %".196" = inttoptr i64 %".195" to <8 x float>*
  %".197" = load <8 x float>, <8 x float>* %".196", align 4
  %".198" = add i64 %".191", 32
  %".199" = inttoptr i64 %".198" to <8 x float>*
  %".200" = load <8 x float>, <8 x float>* %".199", align 4
  %".201" = add i64 %".16", %".194"
  %".202" = add i64 %".201", 0
  %".203" = inttoptr i64 %".202" to float*
  %".204" = load float, float* %".203"
  %".205" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".204", i32 0
  %".206" = shufflevector <8 x float> %".205", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".207" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".206", <8 x float> %".197", <8 x float> %".185")
  %".208" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".206", <8 x float> %".200", <8 x float> %".186")
  %".209" = add i64 %".184", 1
  br label %"head.4"
end.4:
  %".211" = add i64 %".70", 1
  br label %"head.2"
partial:
  %".215" = inttoptr i64 %".3" to i64*
  %".216" = load i64, i64* %".215"
  %".217" = add i64 %".216", %".48"
  %".218" = add i64 %".217", 0
  %".219" = inttoptr i64 %".218" to <8 x float>*
  store <8 x float> %".71", <8 x float>* %".219", align 4
  %".221" = icmp ult i64 %".10", 8
  %".222" = select  i1 %".221", i64 %".10", i64 8
  %".223" = trunc i64 %".10" to i32
  %".224" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".223", i32 0
  %".225" = shufflevector <8 x i32> %".224", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".226" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".225"
  %".227" = inttoptr i64 %".3" to i64*
  %".228" = load i64, i64* %".227"
  %".229" = add i64 %".228", %".48"
  %".230" = add i64 %".229", 32
  %".231" = inttoptr i64 %".230" to <8 x float>*
  %".232" = and i64 %".222", 8
  %".233" = icmp ne i64 %".232", 0
  br i1 %".233", label %"partial.if", label %"partial.endif"
final:
  %".279" = inttoptr i64 %".3" to i64*
  %".280" = load i64, i64* %".279"
  %".281" = add i64 %".280", %".48"
  %".282" = add i64 %".281", 0
  %".283" = inttoptr i64 %".282" to <8 x float>*
  store <8 x float> %".71", <8 x float>* %".283", align 4
  %".285" = icmp ult i64 %".10", 8
  %".286" = select  i1 %".285", i64 %".10", i64 8
  %".287" = trunc i64 %".10" to i32
  %".288" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".287", i32 0
  %".289" = shufflevector <8 x i32> %".288", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".290" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".289"
  %".291" = inttoptr i64 %".3" to i64*
  %".292" = load i64, i64* %".291"
  %".293" = add i64 %".292", %".48"
  %".294" = add i64 %".293", 32
  %".295" = inttoptr i64 %".294" to <8 x float>*
  %".296" = and i64 %".286", 8
  %".297" = icmp ne i64 %".296", 0
  br i1 %".297", label %"final.if", label %"final.endif"
end.5:
  %".343" = add i64 %".28", 1
  br label %"head.1"
partial.if:
  %".235" = add i64 %".230", 0
  %".236" = inttoptr i64 %".235" to <8 x float>*
  store <8 x float> %".72", <8 x float>* %".236", align 4
  br label %"partial.endif"
partial.endif:
  %".239" = select  i1 %".233", i64 32, i64 0
  %".240" = add i64 0, %".239"
  %".241" = select  i1 %".233", <8 x float> %".72", <8 x float> %".72"
  %".242" = and i64 %".222", 4
  %".243" = icmp ne i64 %".242", 0
  %".244" = shufflevector <8 x float> %".241", <8 x float> %".241", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".245" = shufflevector <8 x float> %".241", <8 x float> %".241", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".243", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".247" = add i64 %".230", %".240"
  %".248" = inttoptr i64 %".247" to <4 x float>*
  store <4 x float> %".244", <4 x float>* %".248", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".251" = select  i1 %".243", i64 16, i64 0
  %".252" = add i64 %".240", %".251"
  %".253" = select  i1 %".243", <4 x float> %".245", <4 x float> %".244"
  %".254" = and i64 %".222", 2
  %".255" = icmp ne i64 %".254", 0
  %".256" = shufflevector <4 x float> %".253", <4 x float> %".253", <2 x i32> <i32 0, i32 1>
  %".257" = shufflevector <4 x float> %".253", <4 x float> %".253", <2 x i32> <i32 2, i32 3>
  br i1 %".255", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".259" = add i64 %".230", %".252"
  %".260" = inttoptr i64 %".259" to <2 x float>*
  store <2 x float> %".256", <2 x float>* %".260", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".263" = select  i1 %".255", i64 8, i64 0
  %".264" = add i64 %".252", %".263"
  %".265" = select  i1 %".255", <2 x float> %".257", <2 x float> %".256"
  %".266" = and i64 %".222", 1
  %".267" = icmp ne i64 %".266", 0
  %".268" = shufflevector <2 x float> %".265", <2 x float> %".265", <1 x i32> <i32 0>
  %".269" = shufflevector <2 x float> %".265", <2 x float> %".265", <1 x i32> <i32 1>
  br i1 %".267", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".271" = add i64 %".230", %".264"
  %".272" = inttoptr i64 %".271" to <1 x float>*
  store <1 x float> %".268", <1 x float>* %".272", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".275" = select  i1 %".267", i64 4, i64 0
  %".276" = add i64 %".264", %".275"
  %".277" = select  i1 %".267", <1 x float> %".269", <1 x float> %".268"
  br label %"end.5"
final.if:
  %".299" = add i64 %".294", 0
  %".300" = inttoptr i64 %".299" to <8 x float>*
  store <8 x float> %".72", <8 x float>* %".300", align 4
  br label %"final.endif"
final.endif:
  %".303" = select  i1 %".297", i64 32, i64 0
  %".304" = add i64 0, %".303"
  %".305" = select  i1 %".297", <8 x float> %".72", <8 x float> %".72"
  %".306" = and i64 %".286", 4
  %".307" = icmp ne i64 %".306", 0
  %".308" = shufflevector <8 x float> %".305", <8 x float> %".305", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".309" = shufflevector <8 x float> %".305", <8 x float> %".305", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".307", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".311" = add i64 %".294", %".304"
  %".312" = inttoptr i64 %".311" to <4 x float>*
  store <4 x float> %".308", <4 x float>* %".312", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".315" = select  i1 %".307", i64 16, i64 0
  %".316" = add i64 %".304", %".315"
  %".317" = select  i1 %".307", <4 x float> %".309", <4 x float> %".308"
  %".318" = and i64 %".286", 2
  %".319" = icmp ne i64 %".318", 0
  %".320" = shufflevector <4 x float> %".317", <4 x float> %".317", <2 x i32> <i32 0, i32 1>
  %".321" = shufflevector <4 x float> %".317", <4 x float> %".317", <2 x i32> <i32 2, i32 3>
  br i1 %".319", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".323" = add i64 %".294", %".316"
  %".324" = inttoptr i64 %".323" to <2 x float>*
  store <2 x float> %".320", <2 x float>* %".324", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".327" = select  i1 %".319", i64 8, i64 0
  %".328" = add i64 %".316", %".327"
  %".329" = select  i1 %".319", <2 x float> %".321", <2 x float> %".320"
  %".330" = and i64 %".286", 1
  %".331" = icmp ne i64 %".330", 0
  %".332" = shufflevector <2 x float> %".329", <2 x float> %".329", <1 x i32> <i32 0>
  %".333" = shufflevector <2 x float> %".329", <2 x float> %".329", <1 x i32> <i32 1>
  br i1 %".331", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".335" = add i64 %".294", %".328"
  %".336" = inttoptr i64 %".335" to <1 x float>*
  store <1 x float> %".332", <1 x float>* %".336", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".339" = select  i1 %".331", i64 4, i64 0
  %".340" = add i64 %".328", %".339"
  %".341" = select  i1 %".331", <1 x float> %".333", <1 x float> %".332"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
