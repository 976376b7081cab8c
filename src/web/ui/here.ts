/** For navigation after a response, which may arrive when the user is doing something else by now. */
import { useRouter } from '@tanstack/react-router';
import { useRef } from 'react';

/** Returns a function that says whether the user is still on the page on which this component was rendered first. */
export function useIsHere(): () => boolean {
  const router = useRouter();
  const page = useRef(router.latestLocation.pathname);
  return () => router.latestLocation.pathname === page.current;
}
