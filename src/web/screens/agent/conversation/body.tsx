/** The content of a message: text as Markdown, and other parts. Nothing is loaded from other hosts. */
import { File } from 'lucide-react';
import type { Body, Part } from '../../../../acp/transcript/parts.ts';
import { CodeBlock } from '../../../prose/code.tsx';
import { Address, Prose } from '../../../prose/markdown.tsx';
import { RawView } from '../../../reviews/raw-view.tsx';

export function BodyView({
  body,
  grows,
  is_markdown = true,
}: {
  body: Body;
  grows: boolean;
  /** False: its text is shown as it is. */
  is_markdown?: boolean;
}) {
  return (
    <>
      {body.parts.map((part, at) => {
        const View = part.type === 'text' && !is_markdown ? WrittenText : PartView;
        // biome-ignore lint/suspicious/noArrayIndexKey: parts never change places
        return <View key={at} part={part} grows={grows && at === body.parts.length - 1} />;
      })}
      {body.omitted_chars > 0 && (
        <p className="text-muted">{body.omitted_chars} more characters not shown.</p>
      )}
    </>
  );
}

/** Text with its lines and spaces. */
function WrittenText({ part }: { part: Part }) {
  return (
    <p
      dir="auto"
      className="measure my-1.5 whitespace-pre-wrap break-words text-prose [overflow-wrap:anywhere]"
    >
      {part.type === 'text' && part.text}
    </p>
  );
}

/** Image types that cannot contain scripts. */
const shown_images = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export function PartView({ part, grows = false }: { part: Part; grows?: boolean }) {
  switch (part.type) {
    case 'text':
      return <Prose text={part.text} grows={grows} />;
    case 'image':
      if (part.data !== null && shown_images.includes(part.mime_type)) {
        return (
          <img
            src={`data:${part.mime_type};base64,${part.data}`}
            alt="From the conversation"
            className="my-1 max-h-96 max-w-full rounded border border-line"
          />
        );
      }
      return <ExternalPart label={`Image (${part.mime_type})`} uri={part.uri} />;
    case 'audio':
      return <ExternalPart label={`Audio (${part.mime_type})`} uri={part.uri} />;
    case 'link':
      return <ExternalPart label={part.title ?? part.name} uri={part.uri} />;
    case 'resource':
      return part.text === null ? (
        <ExternalPart label={part.mime_type ?? 'File'} uri={part.uri} />
      ) : (
        <CodeBlock text={part.text} language={part.uri} />
      );
    case 'unknown':
      return <RawView label="Unrecognized content" value={part.raw.value} truncated={part.raw.truncated} />;
  }
}

function ExternalPart({ label, uri }: { label: string; uri: string | null }) {
  return (
    <p className="flex flex-wrap items-center gap-1">
      <File aria-hidden className="size-3.5 text-muted" />
      {uri === null ? label : <Address to={uri}>{label}</Address>}
    </p>
  );
}
