; ModuleID = "kernel"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define void @"kernel"(i64 %".1", i64 %".2", i64 %".3") nounwind
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
  %".62" = icmp ult i64 %".33", 8
  %".63" = select  i1 %".62", i64 %".33", i64 8
  %".64" = trunc i64 %".33" to i32
  %".65" = insertelement <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, i32 %".64", i32 0
  %".66" = shufflevector <8 x i32> %".65", <8 x i32> <i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".67" = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %".66"
  %".68" = mul i64 %".32", 32
  %".69" = mul i64 %".31", 4
  %".70" = add i64 %".21", %".69"
  %".71" = add i64 %".70", %".68"
  %".72" = inttoptr i64 %".71" to <8 x float>*
  %".73" = call <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".72", i32 4, <8 x i1> %".67", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>)
  %".74" = inttoptr i64 %".24" to float*
  %".75" = load float, float* %".74"
  %".76" = insertelement <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %".75", i32 0
  %".77" = shufflevector <8 x float> %".76", <8 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %".78" = fadd contract <8 x float> %".73", %".77"
  %".79" = fcmp olt <8 x float> %".78", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".80" = select  <8 x i1> %".79", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".78"
  %".81" = fcmp ole <8 x float> %".78", <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>
  %".82" = select  <8 x i1> %".81", <8 x float> <float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0, float              0x0>, <8 x float> %".78"
  %".83" = mul i64 %".31", 4
  %".84" = add i64 %".18", %".83"
  %".85" = add i64 %".84", %".68"
  %".86" = inttoptr i64 %".85" to <8 x float>*
  %".87" = and i64 %".63", 8
  %".88" = icmp ne i64 %".87", 0
  br i1 %".88", label %"end.if.if", label %"end.if.endif"
end.endif:
  ret void
end.if.if:
  %".90" = add i64 %".85", 0
  %".91" = inttoptr i64 %".90" to <8 x float>*
  store <8 x float> %".82", <8 x float>* %".91", align 4
  br label %"end.if.endif"
end.if.endif:
  %".94" = select  i1 %".88", i64 32, i64 0
  %".95" = add i64 0, %".94"
  %".96" = select  i1 %".88", <8 x float> %".82", <8 x float> %".82"
  %".97" = and i64 %".63", 4
  %".98" = icmp ne i64 %".97", 0
  %".99" = shufflevector <8 x float> %".96", <8 x float> %".96", <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".100" = shufflevector <8 x float> %".96", <8 x float> %".96", <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  br i1 %".98", label %"end.if.endif.if", label %"end.if.endif.endif"
end.if.endif.if:
  %".102" = add i64 %".85", %".95"
  %".103" = inttoptr i64 %".102" to <4 x float>*
  store <4 x float> %".99", <4 x float>* %".103", align 4
  br label %"end.if.endif.endif"
end.if.endif.endif:
  %".106" = select  i1 %".98", i64 16, i64 0
  %".107" = add i64 %".95", %".106"
  %".108" = select  i1 %".98", <4 x float> %".100", <4 x float> %".99"
  %".109" = and i64 %".63", 2
  %".110" = icmp ne i64 %".109", 0
  %".111" = shufflevector <4 x float> %".108", <4 x float> %".108", <2 x i32> <i32 0, i32 1>
  %".112" = shufflevector <4 x float> %".108", <4 x float> %".108", <2 x i32> <i32 2, i32 3>
  br i1 %".110", label %"end.if.endif.endif.if", label %"end.if.endif.endif.endif"
end.if.endif.endif.if:
  %".114" = add i64 %".85", %".107"
  %".115" = inttoptr i64 %".114" to <2 x float>*
  store <2 x float> %".111", <2 x float>* %".115", align 4
  br label %"end.if.endif.endif.endif"
end.if.endif.endif.endif:
  %".118" = select  i1 %".110", i64 8, i64 0
  %".119" = add i64 %".107", %".118"
  %".120" = select  i1 %".110", <2 x float> %".112", <2 x float> %".111"
  %".121" = and i64 %".63", 1
  %".122" = icmp ne i64 %".121", 0
  %".123" = shufflevector <2 x float> %".120", <2 x float> %".120", <1 x i32> <i32 0>
  %".124" = shufflevector <2 x float> %".120", <2 x float> %".120", <1 x i32> <i32 1>
  br i1 %".122", label %"end.if.endif.endif.endif.if", label %"end.if.endif.endif.endif.endif"
end.if.endif.endif.endif.if:
  %".126" = add i64 %".85", %".119"
  %".127" = inttoptr i64 %".126" to <1 x float>*
  store <1 x float> %".123", <1 x float>* %".127", align 4
  br label %"end.if.endif.endif.endif.endif"
end.if.endif.endif.endif.endif:
  %".130" = select  i1 %".122", i64 4, i64 0
  %".131" = add i64 %".119", %".130"
  %".132" = select  i1 %".122", <1 x float> %".124", <1 x float> %".123"
  br label %"end.endif"
}

declare <8 x float> @"llvm.masked.load.v8f32.p0"(<8 x float>* %".1", i32 %".2", <8 x i1> %".3", <8 x float> %".4")
