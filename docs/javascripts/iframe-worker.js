// Search of a site that is opened as a file: browsers refuse a worker there, so the worker's script runs in a frame.
(function () {
  "use strict"
  if (window.location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.queue = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inner = this.frame.contentWindow
      inner.document.open()
      inner.document.write("<!doctype html><html><head></head><body></body></html>")
      inner.document.close()
      inner.postMessage = data => this.answer(data)
      inner.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve())
      this.load(url).then(() => {
        const waiting = this.queue
        this.queue = null
        waiting.forEach(data => this.postMessage(data))
      })
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = () => reject(new Error("cannot load " + url))
        this.frame.contentDocument.head.appendChild(script)
      })
    }

    postMessage(data) {
      if (this.queue) this.queue.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }

    answer(data) {
      const event = new MessageEvent("message", { data })
      if (this.onmessage) this.onmessage(event)
      this.dispatchEvent(event)
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
})()
