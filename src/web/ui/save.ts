/** Saves a file from the page. */
export function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // By then the browser has started to read the URL.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
