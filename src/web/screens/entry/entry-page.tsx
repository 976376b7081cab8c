/** The layout of the pages before sign-in: joining and signing in. */
import type { ReactNode } from 'react';

export function EntryPage({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="flex min-h-full items-center justify-center bg-surface p-4">
      <div className="w-full max-w-sm rounded-xl border border-line bg-raised p-6">
        <p className="mb-4 font-semibold text-muted">svc</p>
        <h1 className="mb-4 font-semibold text-xl">{title}</h1>
        {children}
      </div>
    </main>
  );
}
