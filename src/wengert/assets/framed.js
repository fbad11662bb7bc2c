// In the page around a frame: makes the frame as high as the page in it says that it is.
addEventListener("message", ({ data, source }) => {
  for (const frame of document.querySelectorAll("iframe"))
    if (frame.contentWindow === source && data?.wengert > 0) frame.style.height = `${data.wengert + frame.offsetHeight - frame.clientHeight}px`;
});
