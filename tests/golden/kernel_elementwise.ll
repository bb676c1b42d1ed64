; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3")
{
entry:
  %".5" = inttoptr i64 %".3" to i64*
  %".6" = load i64, i64* %".5"
  %".7" = add i64 %".3", 8
  %".8" = inttoptr i64 %".7" to i64*
  %".9" = load i64, i64* %".8"
  %".10" = add i64 %".2", 40
  %".11" = inttoptr i64 %".10" to i64*
  %".12" = load i64, i64* %".11"
  %".13" = mul i64 %".12", %".9"
  %".14" = sub i64 %".6", %".13"
  %".15" = icmp slt i64 %".9", %".14"
  %".16" = select  i1 %".15", i64 %".9", i64 %".14"
  %".17" = inttoptr i64 %".1" to i64*
  %".18" = load i64, i64* %".17"
  %".19" = add i64 %".1", 8
  %".20" = inttoptr i64 %".19" to i64*
  %".21" = load i64, i64* %".20"
  %".22" = add i64 %".1", 16
  %".23" = inttoptr i64 %".22" to i64*
  %".24" = load i64, i64* %".23"
  %".25" = add i64 %".2", 40
  %".26" = inttoptr i64 %".25" to i64*
  %".27" = load i64, i64* %".26"
  %".28" = add i64 %".3", 8
  %".29" = inttoptr i64 %".28" to i64*
  %".30" = load i64, i64* %".29"
  %".31" = mul i64 %".27", %".30"
  %".32" = sdiv i64 %".16", 8
  %".33" = srem i64 %".16", 8
  br label %"head"
head:
  %".35" = phi  i64 [0, %"entry"], [%".58", %"body"]
  %".36" = icmp slt i64 %".35", %".32"
  br i1 %".36", label %"body", label %"end"
body:
  %".38" = mul i64 %".35", 32
  %".39" = mul i64 %".31", 4
  %".40" = add i64 %".21", %".39"
  %".41" = add i64 %".40", %".38"
  %".42" = inttoptr i64 %".41" to <8 x float>*
  %".43" = load <8 x float>, <8 x float>* %".42", align 4
  %".44" = inttoptr i64 %".24" to float*
  %".45" = load float, float* %".44"
  %".46" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".45", i32 0
  %".47" = shufflevector <8 x float> %".46", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".48" = fadd contract <8 x float> %".43", %".47"
  %".49" = fcmp olt <8 x float> %".48", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".50" = select  <8 x i1> %".49", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".48"
  %".51" = fcmp ole <8 x float> %".48", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".52" = select  <8 x i1> %".51", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".48"
  %".53" = mul i64 %".31", 4
  %".54" = add i64 %".18", %".53"
  %".55" = add i64 %".54", %".38"
  %".56" = inttoptr i64 %".55" to <8 x float>*
  store <8 x float> %".52", <8 x float>* %".56", align 4
  %".58" = add i64 %".35", 1
  br label %"head"
end:
  %".60" = icmp sgt i64 %".33", 0
  br i1 %".60", label %"end.if", label %"end.endif"
end.if:
  %".62" = trunc i64 %".33" to i32
  %".63" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".62", i32 0
  %".64" = shufflevector <8 x i32> %".63", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".65" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".64"
  %".66" = mul i64 %".32", 32
  %".67" = mul i64 %".31", 4
  %".68" = add i64 %".21", %".67"
  %".69" = add i64 %".68", %".66"
  %".70" = inttoptr i64 %".69" to <8 x float>*
  %".71" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".70", i32 4, <8 x i1> %".65", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".72" = inttoptr i64 %".24" to float*
  %".73" = load float, float* %".72"
  %".74" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".73", i32 0
  %".75" = shufflevector <8 x float> %".74", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".76" = fadd contract <8 x float> %".71", %".75"
  %".77" = fcmp olt <8 x float> %".76", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".78" = select  <8 x i1> %".77", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".76"
  %".79" = fcmp ole <8 x float> %".76", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".80" = select  <8 x i1> %".79", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".76"
  %".81" = mul i64 %".31", 4
  %".82" = add i64 %".18", %".81"
  %".83" = add i64 %".82", %".66"
  %".84" = inttoptr i64 %".83" to <8 x float>*
  call void @"llvm.masked.store.v8f32.p0"(<8 x float> %".80", <8 x float>* %".84", i32 4, <8 x i1> %".65")
  br label %"end.endif"
end.endif:
  ret void
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")

declare void @"llvm.masked.store.v8f32.p0"(<8 x float> %".1", <8 x float>* %".2", i32 %".3", <8 x i1> %".4")
