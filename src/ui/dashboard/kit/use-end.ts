// A list that stays at its end while it grows, unless somebody has scrolled up to read.
import { useEffect, useRef, useState } from "preact/hooks";

/** Nearer than this to the end counts as the end. */
const END_PX = 60;

/** `shown`: what the list is rendered from, always the same number of values. */
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
    // The list may have grown before the scroll event arrives: that does not count as scrolling up.
    if (scrollHeight - scrollTop - clientHeight < END_PX) setAtEnd(true);
    else if (scrollTop < top.current) setAtEnd(false);
    top.current = scrollTop;
  };
  return { isAtEnd, toEnd, list: { ref: list, onScroll } };
}
