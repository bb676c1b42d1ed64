; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14")
{
entry:
  %".16" = inttoptr i64 %".1" to i64*
  %".17" = load i64, i64* %".16"
  %".18" = mul i64 %".7", 64
  br label %"head"
head:
  %".20" = phi  i64 [0, %"entry"], [%".209", %"end.4"]
  %".21" = icmp slt i64 %".20", %".11"
  br i1 %".21", label %"body", label %"end"
body:
  %".23" = mul i64 %".20", %".12"
  %".24" = mul i64 %".20", %".13"
  %".25" = icmp ne i64 %".8", 0
  br i1 %".25", label %"go", label %"again"
end:
  ret void
again:
  %".27" = inttoptr i64 %".3" to i64*
  %".28" = load i64, i64* %".27"
  %".29" = add i64 %".28", %".24"
  %".30" = add i64 %".29", 0
  %".31" = inttoptr i64 %".30" to <8 x float>*
  %".32" = load <8 x float>, <8 x float>* %".31", align 4
  %".33" = trunc i64 %".10" to i32
  %".34" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".33", i32 0
  %".35" = shufflevector <8 x i32> %".34", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".36" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".35"
  %".37" = add i64 %".29", 32
  %".38" = inttoptr i64 %".37" to <8 x float>*
  %".39" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".38", i32 4, <8 x i1> %".36", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  br label %"go"
go:
  %".41" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".32", %"again"]
  %".42" = phi  <8 x float> [<float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, %"body"], [%".39", %"again"]
  br label %"head.1"
head.1:
  %".44" = phi  i64 [0, %"go"], [%".171", %"end.3"]
  %".45" = phi  <8 x float> [%".41", %"go"], [%".148", %"end.3"]
  %".46" = phi  <8 x float> [%".42", %"go"], [%".149", %"end.3"]
  %".47" = icmp slt i64 %".44", %".6"
  br i1 %".47", label %"body.1", label %"end.1"
body.1:
  %".49" = mul i64 %".44", 8
  %".50" = add i64 %".5", %".49"
  %".51" = inttoptr i64 %".50" to i64*
  %".52" = load i64, i64* %".51"
  %".53" = add i64 %".52", %".23"
  %".54" = mul i64 %".44", %".18"
  %".55" = add i64 %".2", %".54"
  %".56" = sdiv i64 %".7", 4
  %".57" = srem i64 %".7", 4
  br label %"head.2"
end.1:
  %".173" = icmp ne i64 %".9", 0
  br i1 %".173", label %"final", label %"partial"
head.2:
  %".59" = phi  i64 [0, %"body.1"], [%".140", %"body.2"]
  %".60" = phi  <8 x float> [%".45", %"body.1"], [%".138", %"body.2"]
  %".61" = phi  <8 x float> [%".46", %"body.1"], [%".139", %"body.2"]
  %".62" = icmp slt i64 %".59", %".56"
  br i1 %".62", label %"body.2", label %"end.2"
body.2:
  %".64" = mul i64 %".59", 256
  %".65" = add i64 %".55", %".64"
  %".66" = add i64 %".65", 0
  %".67" = mul i64 %".59", 16
  %".68" = add i64 %".53", %".67"
  %".69" = add i64 %".68", 0
  %".70" = add i64 %".66", 0
  %".71" = inttoptr i64 %".70" to <8 x float>*
  %".72" = load <8 x float>, <8 x float>* %".71", align 4
  %".73" = add i64 %".66", 32
  %".74" = inttoptr i64 %".73" to <8 x float>*
  %".75" = load <8 x float>, <8 x float>* %".74", align 4
  %".76" = add i64 %".17", %".69"
  %".77" = inttoptr i64 %".76" to float*
  %".78" = load float, float* %".77"
  %".79" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".78", i32 0
  %".80" = shufflevector <8 x float> %".79", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".81" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".80", <8 x float> %".72", <8 x float> %".60")
  %".82" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".80", <8 x float> %".75", <8 x float> %".61")
  %".83" = mul i64 %".59", 256
  %".84" = add i64 %".55", %".83"
  %".85" = add i64 %".84", 64
  %".86" = mul i64 %".59", 16
  %".87" = add i64 %".53", %".86"
  %".88" = add i64 %".87", 4
  %".89" = add i64 %".85", 0
  %".90" = inttoptr i64 %".89" to <8 x float>*
  %".91" = load <8 x float>, <8 x float>* %".90", align 4
  %".92" = add i64 %".85", 32
  %".93" = inttoptr i64 %".92" to <8 x float>*
  %".94" = load <8 x float>, <8 x float>* %".93", align 4
  %".95" = add i64 %".17", %".88"
  %".96" = inttoptr i64 %".95" to float*
  %".97" = load float, float* %".96"
  %".98" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".97", i32 0
  %".99" = shufflevector <8 x float> %".98", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".100" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".99", <8 x float> %".91", <8 x float> %".81")
  %".101" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".99", <8 x float> %".94", <8 x float> %".82")
  %".102" = mul i64 %".59", 256
  %".103" = add i64 %".55", %".102"
  %".104" = add i64 %".103", 128
  %".105" = mul i64 %".59", 16
  %".106" = add i64 %".53", %".105"
  %".107" = add i64 %".106", 8
  %".108" = add i64 %".104", 0
  %".109" = inttoptr i64 %".108" to <8 x float>*
  %".110" = load <8 x float>, <8 x float>* %".109", align 4
  %".111" = add i64 %".104", 32
  %".112" = inttoptr i64 %".111" to <8 x float>*
  %".113" = load <8 x float>, <8 x float>* %".112", align 4
  %".114" = add i64 %".17", %".107"
  %".115" = inttoptr i64 %".114" to float*
  %".116" = load float, float* %".115"
  %".117" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".116", i32 0
  %".118" = shufflevector <8 x float> %".117", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".119" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".118", <8 x float> %".110", <8 x float> %".100")
  %".120" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".118", <8 x float> %".113", <8 x float> %".101")
  %".121" = mul i64 %".59", 256
  %".122" = add i64 %".55", %".121"
  %".123" = add i64 %".122", 192
  %".124" = mul i64 %".59", 16
  %".125" = add i64 %".53", %".124"
  %".126" = add i64 %".125", 12
  %".127" = add i64 %".123", 0
  %".128" = inttoptr i64 %".127" to <8 x float>*
  %".129" = load <8 x float>, <8 x float>* %".128", align 4
  %".130" = add i64 %".123", 32
  %".131" = inttoptr i64 %".130" to <8 x float>*
  %".132" = load <8 x float>, <8 x float>* %".131", align 4
  %".133" = add i64 %".17", %".126"
  %".134" = inttoptr i64 %".133" to float*
  %".135" = load float, float* %".134"
  %".136" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".135", i32 0
  %".137" = shufflevector <8 x float> %".136", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".138" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".137", <8 x float> %".129", <8 x float> %".119")
  %".139" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".137", <8 x float> %".132", <8 x float> %".120")
  %".140" = add i64 %".59", 1
  br label %"head.2"
end.2:
  %".142" = mul i64 %".56", 256
  %".143" = add i64 %".55", %".142"
  %".144" = mul i64 %".56", 16
  %".145" = add i64 %".53", %".144"
  br label %"head.3"
head.3:
  %".147" = phi  i64 [0, %"end.2"], [%".169", %"body.3"]
  %".148" = phi  <8 x float> [%".60", %"end.2"], [%".167", %"body.3"]
  %".149" = phi  <8 x float> [%".61", %"end.2"], [%".168", %"body.3"]
  %".150" = icmp slt i64 %".147", %".57"
  br i1 %".150", label %"body.3", label %"end.3"
body.3:
  %".152" = mul i64 %".147", 64
  %".153" = add i64 %".143", %".152"
  %".154" = mul i64 %".147", 4
  %".155" = add i64 %".145", %".154"
  %".156" = add i64 %".153", 0
  %".157" = inttoptr i64 %".156" to <8 x float>*
  %".158" = load <8 x float>, <8 x float>* %".157", align 4
  %".159" = add i64 %".153", 32
  %".160" = inttoptr i64 %".159" to <8 x float>*
  %".161" = load <8 x float>, <8 x float>* %".160", align 4
  %".162" = add i64 %".17", %".155"
  %".163" = inttoptr i64 %".162" to float*
  %".164" = load float, float* %".163"
  %".165" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".164", i32 0
  %".166" = shufflevector <8 x float> %".165", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".167" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".158", <8 x float> %".148")
  %".168" = call <8 x float> @"llvm.fma.v8f32"(<8 x float> %".166", <8 x float> %".161", <8 x float> %".149")
  %".169" = add i64 %".147", 1
  br label %"head.3"
end.3:
  %".171" = add i64 %".44", 1
  br label %"head.1"
partial:
  %".175" = inttoptr i64 %".3" to i64*
  %".176" = load i64, i64* %".175"
  %".177" = add i64 %".176", %".24"
  %".178" = add i64 %".177", 0
  %".179" = inttoptr i64 %".178" to <8 x float>*
  store <8 x float> %".45", <8 x float>* %".179", align 4
  %".181" = trunc i64 %".10" to i32
  %".182" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".181", i32 0
  %".183" = shufflevector <8 x i32> %".182", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".184" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".183"
  %".185" = inttoptr i64 %".3" to i64*
  %".186" = load i64, i64* %".185"
  %".187" = add i64 %".186", %".24"
  %".188" = add i64 %".187", 32
  %".189" = inttoptr i64 %".188" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".46", <8 x float>* %".189", i32 4, <8 x i1> %".184")
  br label %"end.4"
final:
  %".192" = inttoptr i64 %".3" to i64*
  %".193" = load i64, i64* %".192"
  %".194" = add i64 %".193", %".24"
  %".195" = add i64 %".194", 0
  %".196" = inttoptr i64 %".195" to <8 x float>*
  store <8 x float> %".45", <8 x float>* %".196", align 4
  %".198" = trunc i64 %".10" to i32
  %".199" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".198", i32 0
  %".200" = shufflevector <8 x i32> %".199", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".201" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".200"
  %".202" = inttoptr i64 %".3" to i64*
  %".203" = load i64, i64* %".202"
  %".204" = add i64 %".203", %".24"
  %".205" = add i64 %".204", 32
  %".206" = inttoptr i64 %".205" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".46", <8 x float>* %".206", i32 4, <8 x i1> %".201")
  br label %"end.4"
end.4:
  %".209" = add i64 %".20", 1
  br label %"head"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare <8 x float> @"llvm.fma.v8f32"(<8 x float> %".1", <8 x float> %".2", <8 x float> %".3")

declare void @"llvm.masked.store.v8f32.p0"(<8 x float> %".1", <8 x float>* %".2", i32 %".3", <8 x i1> %".4")
