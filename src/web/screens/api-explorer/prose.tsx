/** Text of a description, in which `code` is in backticks. */
export function Prose({ text }: { text: string }) {
  return text.split('`').map((part, at) =>
    at % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text that does not change
      <code key={at} className="break-words rounded bg-surface px-0.5 font-mono text-sm">
        {part}
      </code>
    ) : (
      part
    ),
  );
}
