/** Controls that appear, or get the focus, under the finger: the second press of a double press must not hit them. */

const early_until = new WeakMap<Element, number>();

/** `isEarlyPress` is true for the events in the element that happen in the next `for_ms`. */
export function expectNoPress(element: Element, for_ms: number): void {
  early_until.set(element, performance.now() + for_ms);
}

/** Whether the key press or tap comes too soon to be meant for the element. */
export function isEarlyPress(element: Element, { timeStamp }: Pick<Event, 'timeStamp'>): boolean {
  return timeStamp < (early_until.get(element) ?? 0);
}
