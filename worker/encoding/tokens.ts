/** Tokens in the machine's byte order, which is little-endian on every platform of the native core. */
export type Tokens = Uint16Array | Uint32Array;
