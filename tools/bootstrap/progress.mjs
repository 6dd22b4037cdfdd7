const QUARTER = 25;

/**
 * Shows the progress of concurrent tasks. Each gets a line when it is done. Until then a terminal shows it in its last
 * line; other outputs get a line per quarter of a task that reports its progress.
 */
export class Progress {
  #stream;
  #running = new Set();

  /** @param {{write: (text: string) => void, isTTY?: boolean, columns?: number}} stream */
  constructor(stream) {
    this.#stream = stream;
  }

  /**
   * Runs a task and shows its duration.
   * @param {string} label
   * @param {(onProgress: (percent: number) => void) => Promise<T>} work
   * @returns {Promise<T>}
   * @template T
   */
  async timed(label, work) {
    const started = performance.now();
    const piece = { label, percent: null };
    this.#running.add(piece);
    this.#drawRunning();
    let outcome = 'failed';
    try {
      const result = await work((percent) => this.#advance(piece, percent));
      outcome = `${((performance.now() - started) / 1000).toFixed(1)} s`;
      return result;
    } finally {
      this.#running.delete(piece);
      this.#line(`${label} … ${outcome}`);
    }
  }

  #advance(piece, percent) {
    const quarter = (value) => Math.floor((value ?? 0) / QUARTER);
    const newQuarter = quarter(percent) > quarter(piece.percent) && percent < 100;
    piece.percent = Math.max(percent, piece.percent ?? 0);
    if (this.#stream.isTTY) this.#drawRunning();
    else if (newQuarter) this.#line(`${piece.label} … ${quarter(percent) * QUARTER} %`);
  }

  #line(text) {
    this.#stream.write(`${this.#stream.isTTY ? '\r\x1b[K' : ''}  ${text}\n`);
    this.#drawRunning();
  }

  /** The last line of a terminal, truncated to its width: a wrapped line could not be overwritten. */
  #drawRunning() {
    if (!this.#stream.isTTY) return;
    const pieces = [...this.#running].map(
      ({ label, percent }) => `${label} …${percent === null ? '' : ` ${percent} %`}`,
    );
    const text = pieces.length === 0 ? '' : `  ${pieces.join(', ')}`;
    this.#stream.write(`\r\x1b[K${text.slice(0, (this.#stream.columns || 80) - 1)}`);
  }
}
