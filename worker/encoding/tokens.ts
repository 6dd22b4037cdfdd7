/** Tokens in the machine's order of bytes, which is little-endian wherever the native core runs. */
export type Tokens = Uint16Array | Uint32Array;
