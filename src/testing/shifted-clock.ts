/** Loaded by `node --import` before a program whose clock is wrong by the milliseconds in this module's URL, `?ms=3600000`. */
const shift_ms = Number(new URL(import.meta.url).searchParams.get('ms'));
const RightDate = Date;

globalThis.Date = new Proxy(RightDate, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [RightDate.now() + shift_ms] : args, self),
  apply: () => new Date().toString(),
  get: (target, name) => (name === 'now' ? () => RightDate.now() + shift_ms : Reflect.get(target, name)),
});
