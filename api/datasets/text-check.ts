import { ZerofleetError } from '../../contracts/index.js';
import { NO_LINES } from '../contents/check-lines.js';
import type { ContentCheck } from './content-check.js';
import { Utf8Validator } from './utf8.js';

/** Checks that an upload is UTF-8: one document. */
export class TextCheck implements ContentCheck {
  private readonly validator = new Utf8Validator();
  private bytes = 0;

  push(piece: Uint8Array): void {
    this.bytes += piece.length;
    refuseInvalid(this.validator.push(piece));
  }

  end() {
    refuseInvalid(this.validator.end());
    if (this.bytes === 0)
      throw new ZerofleetError('dataset_empty', 'the body has no bytes; a dataset needs some text');
    // The bytes tokenizer makes one token per byte.
    return { num_documents: 1, ...NO_LINES, num_tokens: this.bytes, max_token: null };
  }
}

function refuseInvalid(position: number | null): void {
  if (position === null) return;
  throw new ZerofleetError('dataset_not_utf8', `the text is not UTF-8 at byte ${position}`, {
    details: { position },
  });
}
