// A list that stays at its end while it grows, unless somebody has scrolled up to read.
import { useEffect, useRef, useState } from "preact/hooks";

/** Nearer than this to the end counts as the end. */
const END_PX = 60;

/** `shown`: what the list is drawn from, always as many parts. */
export function useEnd<T extends HTMLElement>(shown: readonly unknown[], follows = true) {
  const list = useRef<T>(null);
  const top = useRef(0);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = (): void => {
    if (list.current) list.current.scrollTop = list.current.scrollHeight;
  };
  useEffect(() => {
    if (follows && isAtEnd) toEnd();
  }, [...shown, follows, isAtEnd]);
  const onScroll = (): void => {
    if (!list.current) return;
    const { scrollHeight, scrollTop, clientHeight } = list.current;
    // What was scrolled to the end may have grown before one hears of it: nobody has gone up.
    if (scrollHeight - scrollTop - clientHeight < END_PX) setAtEnd(true);
    else if (scrollTop < top.current) setAtEnd(false);
    top.current = scrollTop;
  };
  return { isAtEnd, toEnd, list: { ref: list, onScroll } };
}
