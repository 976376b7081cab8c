/** A long text that grows. Only its last chunk is rendered and laid out again when something is added. */
import { memo } from 'react';
import { splitText } from './text-chunks.ts';

export function GrowingText({ text, between }: { text: string; between: 'words' | 'lines' }) {
  return splitText(text, between).map((chunk, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: chunks never change places
    <Chunk key={at} text={chunk} />
  ));
}

const Chunk = memo(function Chunk({ text }: { text: string }) {
  return <span className="block">{text}</span>;
});
