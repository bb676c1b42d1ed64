; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13") nounwind
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
  %".27" = phi  i64 [0, %"entry"], [%".308", %"end.1"]
  %".28" = icmp slt i64 %".27", %".25"
  br i1 %".28", label %"body", label %"end"
body:
  br label %"head.1"
end:
  ret void
head.1:
  %".31" = phi  i64 [0, %"body"], [%".306", %"end.5"]
  %".32" = icmp slt i64 %".31", %".23"
  br i1 %".32", label %"body.1", label %"end.1"
body.1:
  %".34" = add i64 %".11", 16
  %".35" = inttoptr i64 %".34" to i64*
  %".36" = load i64, i64* %".35"
  %".37" = mul i64 %".27", %".23"
  %".38" = add i64 %".36", %".37"
  %".39" = add i64 %".38", %".31"
  %".40" = add i64 %".11", 24
  %".41" = inttoptr i64 %".40" to i64*
  %".42" = load i64, i64* %".41"
  %".43" = add i64 %".11", 32
  %".44" = inttoptr i64 %".43" to i64*
  %".45" = load i64, i64* %".44"
  %".46" = mul i64 %".27", %".42"
  %".47" = mul i64 %".31", %".45"
  %".48" = add i64 %".46", %".47"
  %".49" = add i64 %".11", 56
  %".50" = inttoptr i64 %".49" to i64*
  %".51" = load i64, i64* %".50"
  %".52" = add i64 %".11", 64
  %".53" = inttoptr i64 %".52" to i64*
  %".54" = load i64, i64* %".53"
  %".55" = mul i64 %".27", %".51"
  %".56" = mul i64 %".31", %".54"
  %".57" = add i64 %".55", %".56"
  %".58" = add i64 %".11", 40
  %".59" = inttoptr i64 %".58" to i64*
  %".60" = load i64, i64* %".59"
  %".61" = add i64 %".11", 48
  %".62" = inttoptr i64 %".61" to i64*
  %".63" = load i64, i64* %".62"
  %".64" = mul i64 %".27", %".60"
  %".65" = mul i64 %".31", %".63"
  %".66" = add i64 %".64", %".65"
  %".67" = icmp ne i64 %".8", 0
  br i1 %".67", label %"go", label %"again"
end.1:
  %".308" = add i64 %".27", 1
  br label %"head"
again:
  %".69" = inttoptr i64 %".3" to i64*
  %".70" = load i64, i64* %".69"
  %".71" = add i64 %".70", %".66"
  %".72" = add i64 %".71", 0
  %".73" = inttoptr i64 %".72" to <8 x float>*
  %".74" = load <8 x float>, <8 x float>* %".73", align 4
  %".75" = add i64 %".3", 8
  %".76" = inttoptr i64 %".75" to i64*
  %".77" = load i64, i64* %".76"
  %".78" = add i64 %".77", %".66"
  %".79" = add i64 %".78", 0
  %".80" = inttoptr i64 %".79" to <8 x float>*
  %".81" = load <8 x float>, <8 x float>* %".80", align 4
  br label %"go"
go:
  %".83" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".74", %"again"]
  %".84" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body.1"], [%".81", %"again"]
  br label %"head.2"
head.2:
  %".86" = phi  i64 [0, %"go"], [%".259", %"end.4"]
  %".87" = phi  <8 x float> [%".83", %"go"], [%".230", %"end.4"]
  %".88" = phi  <8 x float> [%".84", %"go"], [%".231", %"end.4"]
  %".89" = icmp slt i64 %".86", %".6"
  br i1 %".89", label %"body.2", label %"end.2"
body.2:
  %".91" = mul i64 %".39", %".6"
  %".92" = add i64 %".91", %".86"
  %".93" = mul i64 %".86", 8
  %".94" = add i64 %".5", %".93"
  %".95" = inttoptr i64 %".94" to i64*
  %".96" = load i64, i64* %".95"
  %".97" = add i64 %".96", %".48"
  %".98" = mul i64 %".86", %".20"
  %".99" = add i64 %".2", %".98"
  %".100" = sdiv i64 %".7", 4
  %".101" = srem i64 %".7", 4
  br label %"head.3"
end.2:
  %".261" = icmp ne i64 %".9", 0
  br i1 %".261", label %"final", label %"partial"
head.3:
  %".103" = phi  i64 [0, %"body.2"], [%".219", %"body.3"]
  %".104" = phi  <8 x float> [%".87", %"body.2"], [%".211", %"body.3"]
  %".105" = phi  <8 x float> [%".88", %"body.2"], [%".218", %"body.3"]
  %".106" = icmp slt i64 %".103", %".100"
  br i1 %".106", label %"body.3", label %"end.3"
body.3:
  %".108" = mul i64 %".6", %".20"
  %".109" = sdiv i64 %".7", 4
  %".110" = mul i64 %".92", %".109"
  %".111" = add i64 %".110", %".103"
  %".112" = mul i64 %".111", 128
  %".113" = icmp slt i64 %".112", %".108"
  %".114" = select  i1 %".113", i64 %".112", i64 0
  %".115" = add i64 %".2", %".108"
  %".116" = add i64 %".115", %".114"
  %".117" = add i64 %".116", 0
  %".118" = inttoptr i64 %".117" to i8*
  call void @"llvm.prefetch.p0"(i8* %".118", i32 0, i32 2, i32 1)
  %".120" = add i64 %".116", 64
  %".121" = inttoptr i64 %".120" to i8*
  call void @"llvm.prefetch.p0"(i8* %".121", i32 0, i32 2, i32 1)
  %".123" = mul i64 %".103", 4
  %".124" = mul i64 %".123", 32
  %".125" = add i64 %".99", %".124"
  %".126" = add i64 %".125", 0
  %".127" = mul i64 %".123", 4
  %".128" = add i64 %".97", %".127"
  %".129" = add i64 %".128", 0
  %".130" = add i64 %".126", 0
  %".131" = inttoptr i64 %".130" to <8 x float>*
  %".132" = load <8 x float>, <8 x float>* %".131", align 4
  %".133" = add i64 %".16", %".129"
  %".134" = add i64 %".133", 0
  %".135" = inttoptr i64 %".134" to float*
  %".136" = load float, float* %".135"
  %".137" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".136", i32 0
  %".138" = shufflevector <8 x float> %".137", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".139" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".138", <8 x float> %".132", <8 x float> %".104")
  %".140" = add i64 %".19", %".129"
  %".141" = add i64 %".140", 0
  %".142" = inttoptr i64 %".141" to float*
  %".143" = load float, float* %".142"
  %".144" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".143", i32 0
  %".145" = shufflevector <8 x float> %".144", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".146" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".145", <8 x float> %".132", <8 x float> %".105")
  %".147" = mul i64 %".103", 4
  %".148" = mul i64 %".147", 32
  %".149" = add i64 %".99", %".148"
  %".150" = add i64 %".149", 32
  %".151" = mul i64 %".147", 4
  %".152" = add i64 %".97", %".151"
  %".153" = add i64 %".152", 4
  %".154" = add i64 %".150", 0
  %".155" = inttoptr i64 %".154" to <8 x float>*
  %".156" = load <8 x float>, <8 x float>* %".155", align 4
  %".157" = add i64 %".16", %".153"
  %".158" = add i64 %".157", 0
  %".159" = inttoptr i64 %".158" to float*
  %".160" = load float, float* %".159"
  %".161" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".160", i32 0
  %".162" = shufflevector <8 x float> %".161", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".163" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".162", <8 x float> %".156", <8 x float> %".139")
  %".164" = add i64 %".19", %".153"
  %".165" = add i64 %".164", 0
  %".166" = inttoptr i64 %".165" to float*
  %".167" = load float, float* %".166"
  %".168" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".167", i32 0
  %".169" = shufflevector <8 x float> %".168", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".170" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".169", <8 x float> %".156", <8 x float> %".146")
  %".171" = mul i64 %".103", 4
  %".172" = mul i64 %".171", 32
  %".173" = add i64 %".99", %".172"
  %".174" = add i64 %".173", 64
  %".175" = mul i64 %".171", 4
  %".176" = add i64 %".97", %".175"
  %".177" = add i64 %".176", 8
  %".178" = add i64 %".174", 0
  %".179" = inttoptr i64 %".178" to <8 x float>*
  %".180" = load <8 x float>, <8 x float>* %".179", align 4
  %".181" = add i64 %".16", %".177"
  %".182" = add i64 %".181", 0
  %".183" = inttoptr i64 %".182" to float*
  %".184" = load float, float* %".183"
  %".185" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".184", i32 0
  %".186" = shufflevector <8 x float> %".185", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".187" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".186", <8 x float> %".180", <8 x float> %".163")
  %".188" = add i64 %".19", %".177"
  %".189" = add i64 %".188", 0
  %".190" = inttoptr i64 %".189" to float*
  %".191" = load float, float* %".190"
  %".192" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".191", i32 0
  %".193" = shufflevector <8 x float> %".192", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".194" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".193", <8 x float> %".180", <8 x float> %".170")
  %".195" = mul i64 %".103", 4
  %".196" = mul i64 %".195", 32
  %".197" = add i64 %".99", %".196"
  %".198" = add i64 %".197", 96
  %".199" = mul i64 %".195", 4
  %".200" = add i64 %".97", %".199"
  %".201" = add i64 %".200", 12
  %".202" = add i64 %".198", 0
  %".203" = inttoptr i64 %".202" to <8 x float>*
  %".204" = load <8 x float>, <8 x float>* %".203", align 4
  %".205" = add i64 %".16", %".201"
  %".206" = add i64 %".205", 0
  %".207" = inttoptr i64 %".206" to float*
  %".208" = load float, float* %".207"
  %".209" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".208", i32 0
  %".210" = shufflevector <8 x float> %".209", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".211" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".210", <8 x float> %".204", <8 x float> %".187")
  %".212" = add i64 %".19", %".201"
  %".213" = add i64 %".212", 0
  %".214" = inttoptr i64 %".213" to float*
  %".215" = load float, float* %".214"
  %".216" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".215", i32 0
  %".217" = shufflevector <8 x float> %".216", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".218" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".217", <8 x float> %".204", <8 x float> %".194")
  %".219" = add i64 %".103", 1
  br label %"head.3"
end.3:
  %".221" = mul i64 %".100", 4
  %".222" = mul i64 %".221", 32
  %".223" = add i64 %".99", %".222"
  %".224" = add i64 %".223", 0
  %".225" = mul i64 %".221", 4
  %".226" = add i64 %".97", %".225"
  %".227" = add i64 %".226", 0
  br label %"head.4"
head.4:
  %".229" = phi  i64 [0, %"end.3"], [%".257", %"body.4"]
  %".230" = phi  <8 x float> [%".104", %"end.3"], [%".249", %"body.4"]
  %".231" = phi  <8 x float> [%".105", %"end.3"], [%".256", %"body.4"]
  %".232" = icmp slt i64 %".229", %".101"
  br i1 %".232", label %"body.4", label %"end.4"
body.4:
  %".234" = mul i64 %".229", 32
  %".235" = add i64 %".224", %".234"
  %".236" = add i64 %".235", 0
  %".237" = mul i64 %".229", 4
  %".238" = add i64 %".227", %".237"
  %".239" = add i64 %".238", 0
  %".240" = add i64 %".236", 0
  %".241" = inttoptr i64 %".240" to <8 x float>*
  %".242" = load <8 x float>, <8 x float>* %".241", align 4
  %".243" = add i64 %".16", %".239"
  %".244" = add i64 %".243", 0
  %".245" = inttoptr i64 %".244" to float*
  %".246" = load float, float* %".245"
  %".247" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".246", i32 0
  %".248" = shufflevector <8 x float> %".247", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".249" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".248", <8 x float> %".242", <8 x float> %".230")
  %".250" = add i64 %".19", %".239"
  %".251" = add i64 %".250", 0
  %".252" = inttoptr i64 %".251" to float*
  %".253" = load float, float* %".252"
  %".254" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".253", i32 0
  %".255" = shufflevector <8 x float> %".254", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".256" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".255", <8 x float> %".242", <8 x float> %".231")
  %".257" = add i64 %".229", 1
  br label %"head.4"
end.4:
  %".259" = add i64 %".86", 1
  br label %"head.2"
partial:
  %".263" = inttoptr i64 %".3" to i64*
  %".264" = load i64, i64* %".263"
  %".265" = add i64 %".264", %".66"
  %".266" = add i64 %".265", 0
  %".267" = inttoptr i64 %".266" to <8 x float>*
  store <8 x float> %".87", <8 x float>* %".267", align 4
  %".269" = add i64 %".3", 8
  %".270" = inttoptr i64 %".269" to i64*
  %".271" = load i64, i64* %".270"
  %".272" = add i64 %".271", %".66"
  %".273" = add i64 %".272", 0
  %".274" = inttoptr i64 %".273" to <8 x float>*
  store <8 x float> %".88", <8 x float>* %".274", align 4
  br label %"end.5"
final:
  %".277" = inttoptr i64 %".4" to i64*
  %".278" = load i64, i64* %".277"
  %".279" = add i64 %".278", 0
  %".280" = inttoptr i64 %".279" to <8 x float>*
  %".281" = load <8 x float>, <8 x float>* %".280", align 4
  %".282" = fadd contract <8 x float> %".87", %".281"
  %".283" = fcmp olt <8 x float> %".282", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".284" = select  <8 x i1> %".283", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".282"
  %".285" = fcmp ole <8 x float> %".282", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".286" = select  <8 x i1> %".285", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".282"
  %".287" = inttoptr i64 %".3" to i64*
  %".288" = load i64, i64* %".287"
  %".289" = add i64 %".288", %".66"
  %".290" = add i64 %".289", 0
  %".291" = inttoptr i64 %".290" to <8 x float>*
  store <8 x float> %".286", <8 x float>* %".291", align 4
  %".293" = fadd contract <8 x float> %".88", %".281"
  %".294" = fcmp olt <8 x float> %".293", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".295" = select  <8 x i1> %".294", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".293"
  %".296" = fcmp ole <8 x float> %".293", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".297" = select  <8 x i1> %".296", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".293"
  %".298" = add i64 %".3", 8
  %".299" = inttoptr i64 %".298" to i64*
  %".300" = load i64, i64* %".299"
  %".301" = add i64 %".300", %".66"
  %".302" = add i64 %".301", 0
  %".303" = inttoptr i64 %".302" to <8 x float>*
  store <8 x float> %".297", <8 x float>* %".303", align 4
  br label %"end.5"
end.5:
  %".306" = add i64 %".31", 1
  br label %"head.1"
}

declare void @"llvm.prefetch.p0"(i8* %".1", i32 %".2", i32 %".3", i32 %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")
