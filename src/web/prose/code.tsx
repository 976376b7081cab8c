/** A block of code with a copy button. */
import { Copy } from '../ui/copy.tsx';
import { ScrollBox } from '../ui/scroll-box.tsx';

export function CodeBlock({ text, language }: { text: string; language?: string }) {
  return (
    <figure className="my-2 min-w-0 overflow-hidden rounded-md border border-line">
      <figcaption className="flex items-center justify-between bg-surface pl-3 text-muted text-sm">
        <span className="truncate">{language || 'text'}</span>
        <Copy text={text} />
      </figcaption>
      <ScrollBox label="Code">
        <pre className="w-max min-w-full p-3 font-mono text-sm" dir="ltr">
          <code>{text}</code>
        </pre>
      </ScrollBox>
    </figure>
  );
}
