/** Whether the network reaches the service. */
import { useSyncExternalStore } from 'react';
import { online } from '../streams/online.ts';

export function useOnline(): boolean {
  return useSyncExternalStore(online.subscribe, online.get, () => true);
}
