/**
 * Reads event files of TensorBoard: records of TFRecord, and the fields of protobuf messages, without their checksums.
 */

/** A field of a protobuf message: a number of a varint, or the bytes of another type. */
type Field = [number: number, value: number | Buffer];

/** Steps with values that TensorBoard shows, in order: a session that starts at a step removes those from there on. */
export function stepsOf(file: Buffer): number[] {
  let steps: number[] = [];
  for (const fields of recordsOf(file).map(fieldsOf)) {
    const valueIn = (wanted: number) => fields.find(([number]) => number === wanted)?.[1];
    const step = Number(valueIn(2) ?? 0);
    if (valueIn(7) !== undefined) steps = steps.filter((known) => known < step);
    if (valueIn(5) !== undefined) steps.push(step);
  }
  return steps;
}

function recordsOf(file: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    records.push(file.subarray(at + 12, at + 12 + length));
    at += 12 + length + 4;
  }
  return records;
}

function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message.readUInt8(at);
      at += 1;
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const type = key % 8;
    const number = Math.floor(key / 8);
    if (type === 0) {
      fields.push([number, varint()]);
      continue;
    }
    const length = type === 1 ? 8 : type === 5 ? 4 : varint();
    fields.push([number, message.subarray(at, at + length)]);
    at += length;
  }
  return fields;
}
