/** Reader of protocol buffers: the fields of one message, in order. */

interface ProtoField {
  number: number;
  /** A varint (negative ones as two's complement), the bytes of a fixed-size number, or those of a text or message. */
  value: bigint | Buffer;
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Bytes of the longest varint. */
const MAX_VARINT = 10;

/** @throws RangeError for bytes that are no message */
export function* protoFields(message: Buffer): Generator<ProtoField> {
  let offset = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let bytes = 0; bytes < MAX_VARINT; bytes++) {
      const byte = message[offset++];
      if (byte === undefined) throw new RangeError('a number is cut short');
      value |= BigInt(byte & 0x7f) << BigInt(7 * bytes);
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new RangeError('a number has more than 10 bytes');
  };
  const bytes = (length: bigint): Buffer => {
    if (length < 0n || length > BigInt(message.length - offset)) throw new RangeError('a field is cut short');
    const begin = offset;
    offset += Number(length);
    return message.subarray(begin, offset);
  };
  while (offset < message.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const type = Number(tag & 7n);
    if (number < 1 || number > 0x1fffffff) throw new RangeError(`there is no field ${number}`);
    if (type === VARINT) yield { number, value: varint() };
    else if (type === FIXED64) yield { number, value: bytes(8n) };
    else if (type === BYTES) yield { number, value: bytes(varint()) };
    else if (type === FIXED32) yield { number, value: bytes(4n) };
    else throw new RangeError(`field ${number} has the unknown wire type ${type}`);
  }
}
