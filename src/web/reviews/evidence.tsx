/** The complete content of a permission request, so that users see what they allow. */
import { lazy, Suspense } from 'react';
import type { Call } from '../../acp/transcript/calls.ts';
import { escapeHidden } from '../../core/visible.ts';
import { CodeBlock } from '../prose/code.tsx';
import { DiffView } from './diff-view.tsx';
import { relativePath } from './paths.ts';
import { RawView } from './raw-view.tsx';
import { findCommand } from './review-view.ts';

/** Few conversations need it. */
const EvidenceText = lazy(() => import('./evidence-text.tsx'));

export function Evidence({ call, workdir }: { call: Call; workdir: string | undefined }) {
  const command = findCommand(call);
  const diffed = new Set(call.content.flatMap((item) => (item.type === 'diff' ? [item.path] : [])));
  const places = call.locations.filter(({ path }) => !diffed.has(path));
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      {command !== null && command !== call.title && (
        <CodeBlock text={command} shown={escapeHidden(command)} language="command" wraps />
      )}
      {places.map(({ path, line }) => (
        <p key={`${path}:${line}`} className="break-all font-mono text-sm">
          {relativePath(path, workdir)}
          {line !== null && `:${line}`}
        </p>
      ))}
      {call.content.map((content, at) => {
        const key = `${at} ${content.type}`;
        if (content.type === 'diff') return <DiffView key={key} diff={content} workdir={workdir} />;
        if (content.type === 'content' && content.part.type === 'text')
          return (
            <Suspense key={key} fallback={<Unformatted text={content.part.text} />}>
              <EvidenceText text={content.part.text} />
            </Suspense>
          );
        if (content.type === 'content')
          return <RawView key={key} label={content.part.type} value={content.part} />;
        return <RawView key={key} label={content.type} value={content} />;
      })}
      {call.content_cut > 0 && <p className="text-muted">{call.content_cut} more not shown.</p>}
      {call.raw_input && (
        <RawView label="Input" value={call.raw_input.value} truncated={call.raw_input.truncated} />
      )}
    </div>
  );
}

/** Takes about the space of the formatted text, so that the options do not move. */
function Unformatted({ text }: { text: string }) {
  return <p className="whitespace-pre-wrap text-prose [overflow-wrap:anywhere]">{escapeHidden(text)}</p>;
}
