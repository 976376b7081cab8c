/** For navigation after a response, which may arrive when the user is doing something else by now. */
import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';

/** Returns a function that says whether the user is still on the page on which this component was rendered first. */
export function useIsHere(): () => boolean {
  const router = useRouter();
  const page = useRef(router.latestLocation.pathname);
  return () => router.latestLocation.pathname === page.current;
}

/** Returns a function that says whether this component is still on the screen. The same page may show another one by then. */
export function useIsShown(): () => boolean {
  const shown = useRef(false);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  return () => shown.current;
}
