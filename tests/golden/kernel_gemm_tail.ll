; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13") nounwind
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
  %".24" = phi  i64 [0, %"entry"], [%".353", %"end.1"]
  %".25" = icmp slt i64 %".24", %".22"
  br i1 %".25", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".28" = phi  i64 [0, %"body"], [%".351", %"end.5"]
  %".29" = icmp slt i64 %".28", %".20"
  br i1 %".29", label %"body.1", label %"end.1"
body.1:
  %".31" = add i64 %".11", 16
  %".32" = inttoptr i64 %".31" to i64*
  %".33" = load i64, i64* %".32"
  %".34" = mul i64 %".24", %".20"
  %".35" = add i64 %".33", %".34"
  %".36" = add i64 %".35", %".28"
  %".37" = add i64 %".11", 24
  %".38" = inttoptr i64 %".37" to i64*
  %".39" = load i64, i64* %".38"
  %".40" = add i64 %".11", 32
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = mul i64 %".24", %".39"
  %".44" = mul i64 %".28", %".42"
  %".45" = add i64 %".43", %".44"
  %".46" = add i64 %".11", 40
  %".47" = inttoptr i64 %".46" to i64*
  %".48" = load i64, i64* %".47"
  %".49" = add i64 %".11", 48
  %".50" = inttoptr i64 %".49" to i64*
  %".51" = load i64, i64* %".50"
  %".52" = mul i64 %".24", %".48"
  %".53" = mul i64 %".28", %".51"
  %".54" = add i64 %".52", %".53"
  %".55" = icmp ne i64 %".8", 0
  br i1 %".55", label %"go", label %"again"
end.1:
  %".353" = add i64 %".24", 1
  br label %"head"
again:
  %".57" = inttoptr i64 %".3" to i64*
  %".58" = load i64, i64* %".57"
  %".59" = add i64 %".58", %".54"
  %".60" = add i64 %".59", 0
  %".61" = inttoptr i64 %".60" to <8 x float>*
  %".62" = load <8 x float>, <8 x float>* %".61", align 4
  %".63" = icmp ult i64 %".10", 8
  %".64" = select  i1 %".63", i64 %".10", i64 8
  %".65" = trunc i64 %".10" to i32
  %".66" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".65", i32 0
  %".67" = shufflevector <8 x i32> %".66", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".68" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".67"
  %".69" = add i64 %".59", 32
  %".70" = inttoptr i64 %".69" to <8 x float>*
  %".71" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".70", i32 4, <8 x i1> %".68", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".73" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".62", %"again"]
  %".74" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".71", %"again"]
  br label %"head.2"
head.2:
  %".76" = phi  i64 [0, %"go"], [%".219", %"end.4"]
  %".77" = phi  <8 x float> [%".73", %"go"], [%".193", %"end.4"]
  %".78" = phi  <8 x float> [%".74", %"go"], [%".194", %"end.4"]
  %".79" = icmp slt i64 %".76", %".6"
  br i1 %".79", label %"body.2", label %"end.2"
body.2:
  %".81" = mul i64 %".36", %".6"
  %".82" = add i64 %".81", %".76"
  %".83" = mul i64 %".76", 8
  %".84" = add i64 %".5", %".83"
  %".85" = inttoptr i64 %".84" to i64*
  %".86" = load i64, i64* %".85"
  %".87" = add i64 %".86", %".45"
  %".88" = mul i64 %".76", %".17"
  %".89" = add i64 %".2", %".88"
  %".90" = sdiv i64 %".7", 4
  %".91" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".221" = icmp ne i64 %".9", 0
  br i1 %".221", label %"final", label %"partial"
head.3:
  %".93" = phi  i64 [0, %"body.2"], [%".182", %"body.3"]
  %".94" = phi  <8 x float> [%".77", %"body.2"], [%".180", %"body.3"]
  %".95" = phi  <8 x float> [%".78", %"body.2"], [%".181", %"body.3"]
  %".96" = icmp slt i64 %".93", %".90"
  br i1 %".96", label %"body.3", label %"end.3"
body.3:
  %".98" = mul i64 %".93", 4
  %".99" = mul i64 %".98", 64
  %".100" = add i64 %".89", %".99"
  %".101" = add i64 %".100", 0
  %".102" = mul i64 %".98", 4
  %".103" = add i64 %".87", %".102"
  %".104" = add i64 %".103", 0
  %".105" = add i64 %".101", 0
  %".106" = inttoptr i64 %".105" to <8 x float>*
  %".107" = load <8 x float>, <8 x float>* %".106", align 4
  %".108" = add i64 %".101", 32
  %".109" = inttoptr i64 %".108" to <8 x float>*
  %".110" = load <8 x float>, <8 x float>* %".109", align 4
  %".111" = add i64 %".16", %".104"
  %".112" = add i64 %".111", 0
  %".113" = inttoptr i64 %".112" to float*
  %".114" = load float, float* %".113"
  %".115" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".114", i32 0
  %".116" = shufflevector <8 x float> %".115", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".117" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".107", <8 x float> %".94")
  %".118" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".116", <8 x float> %".110", <8 x float> %".95")
  %".119" = mul i64 %".93", 4
  %".120" = mul i64 %".119", 64
  %".121" = add i64 %".89", %".120"
  %".122" = add i64 %".121", 64
  %".123" = mul i64 %".119", 4
  %".124" = add i64 %".87", %".123"
  %".125" = add i64 %".124", 4
  %".126" = add i64 %".122", 0
  %".127" = inttoptr i64 %".126" to <8 x float>*
  %".128" = load <8 x float>, <8 x float>* %".127", align 4
  %".129" = add i64 %".122", 32
  %".130" = inttoptr i64 %".129" to <8 x float>*
  %".131" = load <8 x float>, <8 x float>* %".130", align 4
  %".132" = add i64 %".16", %".125"
  %".133" = add i64 %".132", 0
  %".134" = inttoptr i64 %".133" to float*
  %".135" = load float, float* %".134"
  %".136" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".135", i32 0
  %".137" = shufflevector <8 x float> %".136", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".138" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".137", <8 x float> %".128", <8 x float> %".117")
  %".139" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".137", <8 x float> %".131", <8 x float> %".118")
  %".140" = mul i64 %".93", 4
  %".141" = mul i64 %".140", 64
  %".142" = add i64 %".89", %".141"
  %".143" = add i64 %".142", 128
  %".144" = mul i64 %".140", 4
  %".145" = add i64 %".87", %".144"
  %".146" = add i64 %".145", 8
  %".147" = add i64 %".143", 0
  %".148" = inttoptr i64 %".147" to <8 x float>*
  %".149" = load <8 x float>, <8 x float>* %".148", align 4
  %".150" = add i64 %".143", 32
  %".151" = inttoptr i64 %".150" to <8 x float>*
  %".152" = load <8 x float>, <8 x float>* %".151", align 4
  %".153" = add i64 %".16", %".146"
  %".154" = add i64 %".153", 0
  %".155" = inttoptr i64 %".154" to float*
  %".156" = load float, float* %".155"
  %".157" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".156", i32 0
  %".158" = shufflevector <8 x float> %".157", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".159" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".149", <8 x float> %".138")
  %".160" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".152", <8 x float> %".139")
  %".161" = mul i64 %".93", 4
  %".162" = mul i64 %".161", 64
  %".163" = add i64 %".89", %".162"
  %".164" = add i64 %".163", 192
  %".165" = mul i64 %".161", 4
  %".166" = add i64 %".87", %".165"
  %".167" = add i64 %".166", 12
  %".168" = add i64 %".164", 0
  %".169" = inttoptr i64 %".168" to <8 x float>*
  %".170" = load <8 x float>, <8 x float>* %".169", align 4
  %".171" = add i64 %".164", 32
  %".172" = inttoptr i64 %".171" to <8 x float>*
  %".173" = load <8 x float>, <8 x float>* %".172", align 4
  %".174" = add i64 %".16", %".167"
  %".175" = add i64 %".174", 0
  %".176" = inttoptr i64 %".175" to float*
  %".177" = load float, float* %".176"
  %".178" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".177", i32 0
  %".179" = shufflevector <8 x float> %".178", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".180" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".179", <8 x float> %".170", <8 x float> %".159")
  %".181" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".179", <8 x float> %".173", <8 x float> %".160")
  %".182" = add i64 %".93", 1
  br label %"head.3"
end.3:
  %".184" = mul i64 %".90", 4
  %".185" = mul i64 %".184", 64
  %".186" = add i64 %".89", %".185"
  %".187" = add i64 %".186", 0
  %".188" = mul i64 %".184", 4
  %".189" = add i64 %".87", %".188"
  %".190" = add i64 %".189", 0
  br label %"head.4"
head.4:
  %".192" = phi  i64 [0, %"end.3"], [%".217", %"body.4"]
  %".193" = phi  <8 x float> [%".94", %"end.3"], [%".215", %"body.4"]
  %".194" = phi  <8 x float> [%".95", %"end.3"], [%".216", %"body.4"]
  %".195" = icmp slt i64 %".192", %".91"
  br i1 %".195", label %"body.4", label %"end.4"
body.4:
  %".197" = mul i64 %".192", 64
  %".198" = add i64 %".187", %".197"
  %".199" = add i64 %".198", 0
  %".200" = mul i64 %".192", 4
  %".201" = add i64 %".190", %".200"
  %".202" = add i64 %".201", 0
  %".203" = add i64 %".199", 0
  %".204" = inttoptr i64 %".203" to <8 x float>*
  %".205" = load <8 x float>, <8 x float>* %".204", align 4
  %".206" = add i64 %".199", 32
  %".207" = inttoptr i64 %".206" to <8 x float>*
  %".208" = load <8 x float>, <8 x float>* %".207", align 4
  %".209" = add i64 %".16", %".202"
  %".210" = add i64 %".209", 0
  %".211" = inttoptr i64 %".210" to float*
  %".212" = load float, float* %".211"
  %".213" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".212", i32 0
  %".214" = shufflevector <8 x float> %".213", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".215" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".214", <8 x float> %".205", <8 x float> %".193")
  %".216" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".214", <8 x float> %".208", <8 x float> %".194")
  %".217" = add i64 %".192", 1
  br label %"head.4"
end.4:
  %".219" = add i64 %".76", 1
  br label %"head.2"
partial:
  %".223" = inttoptr i64 %".3" to i64*
  %".224" = load i64, i64* %".223"
  %".225" = add i64 %".224", %".54"
  %".226" = add i64 %".225", 0
  %".227" = inttoptr i64 %".226" to <8 x float>*
  store <8 x float> %".77", <8 x float>* %".227", align 4
  %".229" = icmp ult i64 %".10", 8
  %".230" = select  i1 %".229", i64 %".10", i64 8
  %".231" = trunc i64 %".10" to i32
  %".232" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".231", i32 0
  %".233" = shufflevector <8 x i32> %".232", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".234" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".233"
  %".235" = inttoptr i64 %".3" to i64*
  %".236" = load i64, i64* %".235"
  %".237" = add i64 %".236", %".54"
  %".238" = add i64 %".237", 32
  %".239" = inttoptr i64 %".238" to <8 x float>*
  %".240" = and i64 %".230", 8
  %".241" = icmp ne i64 %".240", 0
  br i1 %".241", label %"partial.if", label %"partial.endif"
final:
  %".287" = inttoptr i64 %".3" to i64*
  %".288" = load i64, i64* %".287"
  %".289" = add i64 %".288", %".54"
  %".290" = add i64 %".289", 0
  %".291" = inttoptr i64 %".290" to <8 x float>*
  store <8 x float> %".77", <8 x float>* %".291", align 4
  %".293" = icmp ult i64 %".10", 8
  %".294" = select  i1 %".293", i64 %".10", i64 8
  %".295" = trunc i64 %".10" to i32
  %".296" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".295", i32 0
  %".297" = shufflevector <8 x i32> %".296", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".298" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".297"
  %".299" = inttoptr i64 %".3" to i64*
  %".300" = load i64, i64* %".299"
  %".301" = add i64 %".300", %".54"
  %".302" = add i64 %".301", 32
  %".303" = inttoptr i64 %".302" to <8 x float>*
  %".304" = and i64 %".294", 8
  %".305" = icmp ne i64 %".304", 0
  br i1 %".305", label %"final.if", label %"final.endif"
end.5:
  %".351" = add i64 %".28", 1
  br label %"head.1"
partial.if:
  %".243" = add i64 %".238", 0
  %".244" = inttoptr i64 %".243" to <8 x float>*
  store <8 x float> %".78", <8 x float>* %".244", align 4
  br label %"partial.endif"
partial.endif:
  %".247" = select  i1 %".241", i64 32, i64 0
  %".248" = add i64 0, %".247"
  %".249" = select  i1 %".241", <8 x float> %".78", <8 x float> %".78"
  %".250" = and i64 %".230", 4
  %".251" = icmp ne i64 %".250", 0
  %".252" = shufflevector <8 x float> %".249", <8 x float> %".249", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".253" = shufflevector <8 x float> %".249", <8 x float> %".249", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".251", label %"partial.endif.if", label %"partial.endif.endif"
partial.endif.if:
  %".255" = add i64 %".238", %".248"
  %".256" = inttoptr i64 %".255" to <4 x float>*
  store <4 x float> %".252", <4 x float>* %".256", align 4
  br label %"partial.endif.endif"
partial.endif.endif:
  %".259" = select  i1 %".251", i64 16, i64 0
  %".260" = add i64 %".248", %".259"
  %".261" = select  i1 %".251", <4 x float> %".253", <4 x float> %".252"
  %".262" = and i64 %".230", 2
  %".263" = icmp ne i64 %".262", 0
  %".264" = shufflevector <4 x float> %".261", <4 x float> %".261", <2 x i32> <i32 0, i32 1>
  %".265" = shufflevector <4 x float> %".261", <4 x float> %".261", <2 x i32> <i32 2, i32 3>
  br i1 %".263", label %"partial.endif.endif.if", label %"partial.endif.endif.endif"
partial.endif.endif.if:
  %".267" = add i64 %".238", %".260"
  %".268" = inttoptr i64 %".267" to <2 x float>*
  store <2 x float> %".264", <2 x float>* %".268", align 4
  br label %"partial.endif.endif.endif"
partial.endif.endif.endif:
  %".271" = select  i1 %".263", i64 8, i64 0
  %".272" = add i64 %".260", %".271"
  %".273" = select  i1 %".263", <2 x float> %".265", <2 x float> %".264"
  %".274" = and i64 %".230", 1
  %".275" = icmp ne i64 %".274", 0
  %".276" = shufflevector <2 x float> %".273", <2 x float> %".273", <1 x i32> <i32 0>
  %".277" = shufflevector <2 x float> %".273", <2 x float> %".273", <1 x i32> <i32 1>
  br i1 %".275", label %"partial.endif.endif.endif.if", label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.if:
  %".279" = add i64 %".238", %".272"
  %".280" = inttoptr i64 %".279" to <1 x float>*
  store <1 x float> %".276", <1 x float>* %".280", align 4
  br label %"partial.endif.endif.endif.endif"
partial.endif.endif.endif.endif:
  %".283" = select  i1 %".275", i64 4, i64 0
  %".284" = add i64 %".272", %".283"
  %".285" = select  i1 %".275", <1 x float> %".277", <1 x float> %".276"
  br label %"end.5"
final.if:
  %".307" = add i64 %".302", 0
  %".308" = inttoptr i64 %".307" to <8 x float>*
  store <8 x float> %".78", <8 x float>* %".308", align 4
  br label %"final.endif"
final.endif:
  %".311" = select  i1 %".305", i64 32, i64 0
  %".312" = add i64 0, %".311"
  %".313" = select  i1 %".305", <8 x float> %".78", <8 x float> %".78"
  %".314" = and i64 %".294", 4
  %".315" = icmp ne i64 %".314", 0
  %".316" = shufflevector <8 x float> %".313", <8 x float> %".313", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".317" = shufflevector <8 x float> %".313", <8 x float> %".313", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".315", label %"final.endif.if", label %"final.endif.endif"
final.endif.if:
  %".319" = add i64 %".302", %".312"
  %".320" = inttoptr i64 %".319" to <4 x float>*
  store <4 x float> %".316", <4 x float>* %".320", align 4
  br label %"final.endif.endif"
final.endif.endif:
  %".323" = select  i1 %".315", i64 16, i64 0
  %".324" = add i64 %".312", %".323"
  %".325" = select  i1 %".315", <4 x float> %".317", <4 x float> %".316"
  %".326" = and i64 %".294", 2
  %".327" = icmp ne i64 %".326", 0
  %".328" = shufflevector <4 x float> %".325", <4 x float> %".325", <2 x i32> <i32 0, i32 1>
  %".329" = shufflevector <4 x float> %".325", <4 x float> %".325", <2 x i32> <i32 2, i32 3>
  br i1 %".327", label %"final.endif.endif.if", label %"final.endif.endif.endif"
final.endif.endif.if:
  %".331" = add i64 %".302", %".324"
  %".332" = inttoptr i64 %".331" to <2 x float>*
  store <2 x float> %".328", <2 x float>* %".332", align 4
  br label %"final.endif.endif.endif"
final.endif.endif.endif:
  %".335" = select  i1 %".327", i64 8, i64 0
  %".336" = add i64 %".324", %".335"
  %".337" = select  i1 %".327", <2 x float> %".329", <2 x float> %".328"
  %".338" = and i64 %".294", 1
  %".339" = icmp ne i64 %".338", 0
  %".340" = shufflevector <2 x float> %".337", <2 x float> %".337", <1 x i32> <i32 0>
  %".341" = shufflevector <2 x float> %".337", <2 x float> %".337", <1 x i32> <i32 1>
  br i1 %".339", label %"final.endif.endif.endif.if", label %"final.endif.endif.endif.endif"
final.endif.endif.endif.if:
  %".343" = add i64 %".302", %".336"
  %".344" = inttoptr i64 %".343" to <1 x float>*
  store <1 x float> %".340", <1 x float>* %".344", align 4
  br label %"final.endif.endif.endif.endif"
final.endif.endif.endif.endif:
  %".347" = select  i1 %".339", i64 4, i64 0
  %".348" = add i64 %".336", %".347"
  %".349" = select  i1 %".339", <1 x float> %".341", <1 x float> %".340"
  br label %"end.5"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
