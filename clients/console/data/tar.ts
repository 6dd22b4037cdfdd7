/** A tar archive (POSIX ustar) of files that the browser has chosen, which are read only when it is sent. */
const BLOCK = 512;
const MAX_NAME = 100;
const encoder = new TextEncoder();

/** @param files names without folders @throws RangeError for a name that needs more than 100 bytes */
export function tarOf(files: readonly { name: string; content: Blob }[]): Blob {
  const parts = files.flatMap(({ name, content }) => [
    header(name, content.size),
    content,
    new Uint8Array((BLOCK - (content.size % BLOCK)) % BLOCK),
  ]);
  return new Blob([...parts, new Uint8Array(2 * BLOCK)]);
}

function header(name: string, bytes: number): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  if (encoder.encode(name).length > MAX_NAME) throw new RangeError(`${name}: the name is too long`);
  put(0, name);
  put(100, '0000644\0');
  put(108, '0000000\0');
  put(116, '0000000\0');
  putSize(block, bytes);
  put(136, '00000000000\0');
  put(156, '0');
  put(257, 'ustar\x0000');
  put(148, '        ');
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}

/** Sizes of 8 GiB and more have no octal form of 11 digits: they are binary, as GNU tar writes them. */
function putSize(block: Uint8Array, bytes: number): void {
  if (bytes < 8 ** 11) block.set(encoder.encode(bytes.toString(8).padStart(11, '0')), 124);
  else {
    new DataView(block.buffer).setBigUint64(128, BigInt(bytes));
    block[124] = 0x80;
  }
}
