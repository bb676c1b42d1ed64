; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13")
{
entry:
  %".15" = inttoptr i64 %".1" to i64*
  %".16" = load i64, i64* %".15"
  %".17" = add i64 %".1", 8
  %".18" = inttoptr i64 %".17" to i64*
  %".19" = load i64, i64* %".18"
  %".20" = mul i64 %".7", 32
  %".21" = add i64 %".11", 8
  %".22" = inttoptr i64 %".21" to i64*
  %".23" = load i64, i64* %".22"
  %".24" = inttoptr i64 %".11" to i64*
  %".25" = load i64, i64* %".24"
  br label %"head"
head:
  %".27" = phi  i64 [0, %"entry"], [%".304", %"end.1"]
  %".28" = icmp slt i64 %".27", %".25"
  br i1 %".28", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".31" = phi  i64 [0, %"body"], [%".302", %"end.5"]
  %".32" = icmp slt i64 %".31", %".23"
  br i1 %".32", label %"body.1", label %"end.1"
body.1:
  %".34" = mul i64 %".27", %".23"
  %".35" = add i64 %".34", %".31"
  %".36" = add i64 %".11", 16
  %".37" = inttoptr i64 %".36" to i64*
  %".38" = load i64, i64* %".37"
  %".39" = add i64 %".11", 24
  %".40" = inttoptr i64 %".39" to i64*
  %".41" = load i64, i64* %".40"
  %".42" = mul i64 %".27", %".38"
  %".43" = mul i64 %".31", %".41"
  %".44" = add i64 %".42", %".43"
  %".45" = add i64 %".11", 48
  %".46" = inttoptr i64 %".45" to i64*
  %".47" = load i64, i64* %".46"
  %".48" = add i64 %".11", 56
  %".49" = inttoptr i64 %".48" to i64*
  %".50" = load i64, i64* %".49"
  %".51" = mul i64 %".27", %".47"
  %".52" = mul i64 %".31", %".50"
  %".53" = add i64 %".51", %".52"
  %".54" = add i64 %".11", 32
  %".55" = inttoptr i64 %".54" to i64*
  %".56" = load i64, i64* %".55"
  %".57" = add i64 %".11", 40
  %".58" = inttoptr i64 %".57" to i64*
  %".59" = load i64, i64* %".58"
  %".60" = mul i64 %".27", %".56"
  %".61" = mul i64 %".31", %".59"
  %".62" = add i64 %".60", %".61"
  %".63" = icmp ne i64 %".8", 0
  br i1 %".63", label %"go", label %"again"
end.1:
  %".304" = add i64 %".27", 1
  br label %"head"
again:
  %".65" = inttoptr i64 %".3" to i64*
  %".66" = load i64, i64* %".65"
  %".67" = add i64 %".66", %".62"
  %".68" = add i64 %".67", 0
  %".69" = inttoptr i64 %".68" to <8 x float>*
  %".70" = load <8 x float>, <8 x float>* %".69", align 4
  %".71" = add i64 %".3", 8
  %".72" = inttoptr i64 %".71" to i64*
  %".73" = load i64, i64* %".72"
  %".74" = add i64 %".73", %".62"
  %".75" = add i64 %".74", 0
  %".76" = inttoptr i64 %".75" to <8 x float>*
  %".77" = load <8 x float>, <8 x float>* %".76", align 4
  br label %"go"
go:
  %".79" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".70", %"again"]
  %".80" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".77", %"again"]
  br label %"head.2"
head.2:
  %".82" = phi  i64 [0, %"go"], [%".255", %"end.4"]
  %".83" = phi  <8 x float> [%".79", %"go"], [%".226", %"end.4"]
  %".84" = phi  <8 x float> [%".80", %"go"], [%".227", %"end.4"]
  %".85" = icmp slt i64 %".82", %".6"
  br i1 %".85", label %"body.2", label %"end.2"
body.2:
  %".87" = mul i64 %".35", %".6"
  %".88" = add i64 %".87", %".82"
  %".89" = mul i64 %".82", 8
  %".90" = add i64 %".5", %".89"
  %".91" = inttoptr i64 %".90" to i64*
  %".92" = load i64, i64* %".91"
  %".93" = add i64 %".92", %".44"
  %".94" = mul i64 %".82", %".20"
  %".95" = add i64 %".2", %".94"
  %".96" = sdiv i64 %".7", 4
  %".97" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".257" = icmp ne i64 %".9", 0
  br i1 %".257", label %"final", label %"partial"
head.3:
  %".99" = phi  i64 [0, %"body.2"], [%".215", %"body.3"]
  %".100" = phi  <8 x float> [%".83", %"body.2"], [%".207", %"body.3"]
  %".101" = phi  <8 x float> [%".84", %"body.2"], [%".214", %"body.3"]
  %".102" = icmp slt i64 %".99", %".96"
  br i1 %".102", label %"body.3", label %"end.3"
body.3:
  %".104" = mul i64 %".6", %".20"
  %".105" = sdiv i64 %".7", 4
  %".106" = mul i64 %".88", %".105"
  %".107" = add i64 %".106", %".99"
  %".108" = mul i64 %".107", 128
  %".109" = icmp slt i64 %".108", %".104"
  %".110" = select  i1 %".109", i64 %".108", i64 0
  %".111" = add i64 %".2", %".104"
  %".112" = add i64 %".111", %".110"
  %".113" = add i64 %".112", 0
  %".114" = inttoptr i64 %".113" to i8*
  call void @"llvm.prefetch.p0"(i8* %".114", i32 0, i32 2, i32 1)
  %".116" = add i64 %".112", 64
  %".117" = inttoptr i64 %".116" to i8*
  call void @"llvm.prefetch.p0"(i8* %".117", i32 0, i32 2, i32 1)
  %".119" = mul i64 %".99", 4
  %".120" = mul i64 %".119", 32
  %".121" = add i64 %".95", %".120"
  %".122" = add i64 %".121", 0
  %".123" = mul i64 %".119", 4
  %".124" = add i64 %".93", %".123"
  %".125" = add i64 %".124", 0
  %".126" = add i64 %".122", 0
  %".127" = inttoptr i64 %".126" to <8 x float>*
  %".128" = load <8 x float>, <8 x float>* %".127", align 4
  %".129" = add i64 %".16", %".125"
  %".130" = add i64 %".129", 0
  %".131" = inttoptr i64 %".130" to float*
  %".132" = load float, float* %".131"
  %".133" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".132", i32 0
  %".134" = shufflevector <8 x float> %".133", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".135" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".134", <8 x float> %".128", <8 x float> %".100")
  %".136" = add i64 %".19", %".125"
  %".137" = add i64 %".136", 0
  %".138" = inttoptr i64 %".137" to float*
  %".139" = load float, float* %".138"
  %".140" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".139", i32 0
  %".141" = shufflevector <8 x float> %".140", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".142" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".141", <8 x float> %".128", <8 x float> %".101")
  %".143" = mul i64 %".99", 4
  %".144" = mul i64 %".143", 32
  %".145" = add i64 %".95", %".144"
  %".146" = add i64 %".145", 32
  %".147" = mul i64 %".143", 4
  %".148" = add i64 %".93", %".147"
  %".149" = add i64 %".148", 4
  %".150" = add i64 %".146", 0
  %".151" = inttoptr i64 %".150" to <8 x float>*
  %".152" = load <8 x float>, <8 x float>* %".151", align 4
  %".153" = add i64 %".16", %".149"
  %".154" = add i64 %".153", 0
  %".155" = inttoptr i64 %".154" to float*
  %".156" = load float, float* %".155"
  %".157" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".156", i32 0
  %".158" = shufflevector <8 x float> %".157", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".159" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".158", <8 x float> %".152", <8 x float> %".135")
  %".160" = add i64 %".19", %".149"
  %".161" = add i64 %".160", 0
  %".162" = inttoptr i64 %".161" to float*
  %".163" = load float, float* %".162"
  %".164" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".163", i32 0
  %".165" = shufflevector <8 x float> %".164", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".166" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".165", <8 x float> %".152", <8 x float> %".142")
  %".167" = mul i64 %".99", 4
  %".168" = mul i64 %".167", 32
  %".169" = add i64 %".95", %".168"
  %".170" = add i64 %".169", 64
  %".171" = mul i64 %".167", 4
  %".172" = add i64 %".93", %".171"
  %".173" = add i64 %".172", 8
  %".174" = add i64 %".170", 0
  %".175" = inttoptr i64 %".174" to <8 x float>*
  %".176" = load <8 x float>, <8 x float>* %".175", align 4
  %".177" = add i64 %".16", %".173"
  %".178" = add i64 %".177", 0
  %".179" = inttoptr i64 %".178" to float*
  %".180" = load float, float* %".179"
  %".181" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".180", i32 0
  %".182" = shufflevector <8 x float> %".181", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".183" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".182", <8 x float> %".176", <8 x float> %".159")
  %".184" = add i64 %".19", %".173"
  %".185" = add i64 %".184", 0
  %".186" = inttoptr i64 %".185" to float*
  %".187" = load float, float* %".186"
  %".188" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".187", i32 0
  %".189" = shufflevector <8 x float> %".188", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".190" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".189", <8 x float> %".176", <8 x float> %".166")
  %".191" = mul i64 %".99", 4
  %".192" = mul i64 %".191", 32
  %".193" = add i64 %".95", %".192"
  %".194" = add i64 %".193", 96
  %".195" = mul i64 %".191", 4
  %".196" = add i64 %".93", %".195"
  %".197" = add i64 %".196", 12
  %".198" = add i64 %".194", 0
  %".199" = inttoptr i64 %".198" to <8 x float>*
  %".200" = load <8 x float>, <8 x float>* %".199", align 4
  %".201" = add i64 %".16", %".197"
  %".202" = add i64 %".201", 0
  %".203" = inttoptr i64 %".202" to float*
  %".204" = load float, float* %".203"
  %".205" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".204", i32 0
  %".206" = shufflevector <8 x float> %".205", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".207" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".206", <8 x float> %".200", <8 x float> %".183")
  %".208" = add i64 %".19", %".197"
  %".209" = add i64 %".208", 0
  %".210" = inttoptr i64 %".209" to float*
  %".211" = load float, float* %".210"
  %".212" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".211", i32 0
  %".213" = shufflevector <8 x float> %".212", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".214" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".213", <8 x float> %".200", <8 x float> %".190")
  %".215" = add i64 %".99", 1
  br label %"head.3"
end.3:
  %".217" = mul i64 %".96", 4
  %".218" = mul i64 %".217", 32
  %".219" = add i64 %".95", %".218"
  %".220" = add i64 %".219", 0
  %".221" = mul i64 %".217", 4
  %".222" = add i64 %".93", %".221"
  %".223" = add i64 %".222", 0
  br label %"head.4"
head.4:
  %".225" = phi  i64 [0, %"end.3"], [%".253", %"body.4"]
  %".226" = phi  <8 x float> [%".100", %"end.3"], [%".245", %"body.4"]
  %".227" = phi  <8 x float> [%".101", %"end.3"], [%".252", %"body.4"]
  %".228" = icmp slt i64 %".225", %".97"
  br i1 %".228", label %"body.4", label %"end.4"
body.4:
  %".230" = mul i64 %".225", 32
  %".231" = add i64 %".220", %".230"
  %".232" = add i64 %".231", 0
  %".233" = mul i64 %".225", 4
  %".234" = add i64 %".223", %".233"
  %".235" = add i64 %".234", 0
  %".236" = add i64 %".232", 0
  %".237" = inttoptr i64 %".236" to <8 x float>*
  %".238" = load <8 x float>, <8 x float>* %".237", align 4
  %".239" = add i64 %".16", %".235"
  %".240" = add i64 %".239", 0
  %".241" = inttoptr i64 %".240" to float*
  %".242" = load float, float* %".241"
  %".243" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".242", i32 0
  %".244" = shufflevector <8 x float> %".243", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".245" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".244", <8 x float> %".238", <8 x float> %".226")
  %".246" = add i64 %".19", %".235"
  %".247" = add i64 %".246", 0
  %".248" = inttoptr i64 %".247" to float*
  %".249" = load float, float* %".248"
  %".250" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".249", i32 0
  %".251" = shufflevector <8 x float> %".250", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".252" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".251", <8 x float> %".238", <8 x float> %".227")
  %".253" = add i64 %".225", 1
  br label %"head.4"
end.4:
  %".255" = add i64 %".82", 1
  br label %"head.2"
partial:
  %".259" = inttoptr i64 %".3" to i64*
  %".260" = load i64, i64* %".259"
  %".261" = add i64 %".260", %".62"
  %".262" = add i64 %".261", 0
  %".263" = inttoptr i64 %".262" to <8 x float>*
  store <8 x float> %".83", <8 x float>* %".263", align 4
  %".265" = add i64 %".3", 8
  %".266" = inttoptr i64 %".265" to i64*
  %".267" = load i64, i64* %".266"
  %".268" = add i64 %".267", %".62"
  %".269" = add i64 %".268", 0
  %".270" = inttoptr i64 %".269" to <8 x float>*
  store <8 x float> %".84", <8 x float>* %".270", align 4
  br label %"end.5"
final:
  %".273" = inttoptr i64 %".4" to i64*
  %".274" = load i64, i64* %".273"
  %".275" = add i64 %".274", 0
  %".276" = inttoptr i64 %".275" to <8 x float>*
  %".277" = load <8 x float>, <8 x float>* %".276", align 4
  %".278" = fadd contract <8 x float> %".83", %".277"
  %".279" = fcmp olt <8 x float> %".278", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".280" = select  <8 x i1> %".279", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".278"
  %".281" = fcmp ole <8 x float> %".278", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".282" = select  <8 x i1> %".281", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".278"
  %".283" = inttoptr i64 %".3" to i64*
  %".284" = load i64, i64* %".283"
  %".285" = add i64 %".284", %".62"
  %".286" = add i64 %".285", 0
  %".287" = inttoptr i64 %".286" to <8 x float>*
  store <8 x float> %".282", <8 x float>* %".287", align 4
  %".289" = fadd contract <8 x float> %".84", %".277"
  %".290" = fcmp olt <8 x float> %".289", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".291" = select  <8 x i1> %".290", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".289"
  %".292" = fcmp ole <8 x float> %".289", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".293" = select  <8 x i1> %".292", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".289"
  %".294" = add i64 %".3", 8
  %".295" = inttoptr i64 %".294" to i64*
  %".296" = load i64, i64* %".295"
  %".297" = add i64 %".296", %".62"
  %".298" = add i64 %".297", 0
  %".299" = inttoptr i64 %".298" to <8 x float>*
  store <8 x float> %".293", <8 x float>* %".299", align 4
  br label %"end.5"
end.5:
  %".302" = add i64 %".31", 1
  br label %"head.1"
}

declare void @"llvm.prefetch.p0"(i8* %".1", i32 %".2", i32 %".3", i32 %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
