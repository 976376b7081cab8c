/** The layout of the pages before sign-in: joining and signing in. */
import type { ReactNode } from 'react';
import { Mark } from '../../ui/mark.tsx';

export function EntryPage({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="flex min-h-full flex-col bg-sidebar px-4 pt-6">
      {/* Not centered, so that the form stays in place when something below it arrives late. */}
      <main className="mx-auto mt-[14vh] mb-auto w-full max-w-[400px]">
        <header className="mb-6 flex items-center gap-3">
          <Mark className="size-10 shrink-0" />
          <div className="min-w-0">
            <p className="font-semibold text-prose">svc</p>
            <p className="text-muted">Run and review coding agents on your own machines</p>
          </div>
        </header>
        <div className="rounded-lg border border-line bg-raised p-6">
          <h1 className="mb-4 font-semibold text-lg">{title}</h1>
          {children}
        </div>
      </main>
      <footer className="py-4 text-center text-muted text-sm">Version {__SVC_VERSION__}</footer>
    </div>
  );
}
