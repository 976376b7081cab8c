/** Keeps an error within one item of a list: what agents send may be unlike anything that the page expects. */
import { CatchBoundary } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { errorMessage } from '../api/client.ts';
import { isMissingScript } from '../missing-scripts.ts';
import { ActionError } from './states.tsx';

/** Shows the error in place of an item that cannot be rendered. `retryOn`: renders it again when this value changes. */
export function Contained({ retryOn, children }: { retryOn: unknown; children: ReactNode }) {
  return (
    <CatchBoundary getResetKey={() => retryOn} errorComponent={ItemError}>
      {children}
    </CatchBoundary>
  );
}

function ItemError({ error }: { error: unknown }) {
  // The page offers to load it again.
  if (isMissingScript(error)) throw error;
  return <ActionError error={new Error(`This cannot be shown: ${errorMessage(error)}`)} />;
}
