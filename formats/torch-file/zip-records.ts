/** Sizes and signatures of a zip file's records (APPNOTE.TXT 4.3); all numbers are little-endian. */

export const LOCAL_HEADER = { signature: 0x04034b50, bytes: 30 } as const;
export const CENTRAL_HEADER = { signature: 0x02014b50, bytes: 46 } as const;
export const DESCRIPTOR_SIGNATURE = 0x08074b50;
/**
 * Data descriptor: follows the data of an entry whose local header lacks the sizes; longer with 64-bit sizes.
 */
export const DESCRIPTOR_BYTES = 16;
export const DESCRIPTOR64_BYTES = 24;
export const END_OF_DIRECTORY = { signature: 0x06054b50, bytes: 22 } as const;
export const END64_LOCATOR = { signature: 0x07064b50, bytes: 20 } as const;
export const END64 = { signature: 0x06064b50, bytes: 56 } as const;

/** Checksum and sizes follow the data. */
export const FLAG_DESCRIPTOR = 0x0008;
/** Names are UTF-8. */
export const FLAG_UTF8 = 0x0800;

/** Marks of 16- and 32-bit fields whose value is in the zip64 record. */
export const IN_ZIP64_16 = 0xffff;
export const IN_ZIP64_32 = 0xffff_ffff;

export const EXTRA_ZIP64 = 0x0001;
/** PyTorch's padding, which aligns the data to 64 bytes. */
export const EXTRA_PADDING = 0x4246;

/** Reads a 64-bit number; null if it exceeds any file size. */
export function readSize(record: Buffer, at: number): number | null {
  const value = record.readBigUInt64LE(at);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : null;
}
