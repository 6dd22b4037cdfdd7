/**
 * Event files of TensorBoard: records of TFRecord files with protobuf messages `Event` of
 * tensorboard/compat/proto/event.proto. The fields of a message are written in the order of their numbers.
 */
import { crc32c } from '@node-rs/crc32';

/** A part of an event file. `wall_time` in seconds since 1970. */
interface Event {
  wall_time: number;
  step?: number;
  file_version?: string;
  /** Scalars by tag. */
  scalars?: readonly (readonly [tag: string, value: number])[];
  /** Begins a session, which replaces what earlier ones have from `step` on. */
  starts_session?: boolean;
}

/** Version of the format, in the first event of a file. */
export const FILE_VERSION = 'brain.Event:2';

/** `SessionLog.SessionStatus.START` */
const START = 1;
/** Added to rotated checksums, so that the checksum of data with checksums stays a good one. */
const MASK_DELTA = 0xa282ead8;

/** One record: length, its checksum, the message, its checksum. */
export function eventRecord(event: Event): Buffer {
  const message = eventMessage(event).content();
  const record = Buffer.allocUnsafe(8 + 4 + message.length + 4);
  record.writeBigUInt64LE(BigInt(message.length));
  record.writeUInt32LE(maskedCrc(record.subarray(0, 8)), 8);
  record.set(message, 12);
  record.writeUInt32LE(maskedCrc(message), 12 + message.length);
  return record;
}

function eventMessage({ wall_time, step = 0, file_version, scalars, starts_session }: Event): Message {
  const event = new Message().double(1, wall_time);
  // A field with its default is absent.
  if (step !== 0) event.varint(2, step);
  if (file_version !== undefined) event.text(3, file_version);
  if (scalars) {
    const summary = new Message();
    for (const [tag, value] of scalars) summary.message(1, new Message().text(1, tag).float(2, value));
    event.message(5, summary);
  }
  if (starts_session) event.message(7, new Message().varint(1, START));
  return event;
}

/** Types of fields on the wire. */
const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
/** Maximum length of a number of at most 53 bits. */
const VARINT_BYTES = 8;

/** A protobuf message that is being written, field by field. */
class Message {
  private bytes = Buffer.allocUnsafe(64);
  private length = 0;

  content(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  varint(field: number, value: number): this {
    return this.number(field * 8 + WIRE.varint).number(value);
  }

  double(field: number, value: number): this {
    this.number(field * 8 + WIRE.fixed64).reserve(8);
    this.length = this.bytes.writeDoubleLE(value, this.length);
    return this;
  }

  float(field: number, value: number): this {
    this.number(field * 8 + WIRE.fixed32).reserve(4);
    this.length = this.bytes.writeFloatLE(value, this.length);
    return this;
  }

  text(field: number, value: string): this {
    const length = Buffer.byteLength(value);
    this.number(field * 8 + WIRE.bytes)
      .number(length)
      .reserve(length);
    this.length += this.bytes.write(value, this.length);
    return this;
  }

  message(field: number, value: Message): this {
    this.number(field * 8 + WIRE.bytes)
      .number(value.length)
      .reserve(value.length);
    this.length += value.bytes.copy(this.bytes, this.length, 0, value.length);
    return this;
  }

  /** A whole number of at least 0 in groups of 7 bits, the lowest first. */
  private number(value: number): this {
    this.reserve(VARINT_BYTES);
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128))
      this.length = this.bytes.writeUInt8((rest % 128) + 128, this.length);
    this.length = this.bytes.writeUInt8(rest, this.length);
    return this;
  }

  private reserve(length: number): void {
    if (this.length + length <= this.bytes.length) return;
    const bytes = Buffer.allocUnsafe(2 * (this.length + length));
    this.bytes.copy(bytes, 0, 0, this.length);
    this.bytes = bytes;
  }
}

function maskedCrc(data: Buffer): number {
  const crc = crc32c(data);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}
